"""The HTML report, opened in a real browser where there is one."""

import logging
import re
import shutil
import subprocess

import numpy as np
import pytest
import yaml
from measured_logs import ur10

import robodyn_ros as rd
from robodyn_ros.check import Issue, check_model
from robodyn_ros.experiment.results import PHASES, identify_and_write, split_logs
from robodyn_ros.report.record import Record
from robodyn_ros.report.tables import bounded, unit_of

BROWSER = next((path for name in ('chromium', 'chromium-browser', 'google-chrome')
                if (path := shutil.which(name))), None)
CHARTS = ('errors', 'coverage', 'torque', 'friction', 'spectrum', 'parameters', 'singular')


@pytest.fixture(scope='module')
def folder(run):
    return run[0]


@pytest.fixture(scope='module')
def outcome(run):
    return run[1]


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    model, log = ur10()
    where = tmp_path_factory.mktemp('run')
    log.source = 'UR10 <b>&"odd"</b>'
    logs, validation = split_logs([log], 0.7)
    said, logger = [], logging.getLogger('robodyn_ros')
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    outcome = identify_and_write(model, logs, validation, rd.Settings(friction='coulomb'), where,
                                 command='robodyn identify log --urdf ur10.urdf',
                                 record=Record(serial='20195500123', operator='A. Engineer'))
    assert {path.name for path in outcome.files} == {
        'identified.urdf', 'motors.yaml', 'parameters.svg', 'parameters.yaml', 'report.html',
        'residual_spectrum.svg', 'torque.svg'}
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    return where, outcome, said


def test_the_page_needs_no_other_file_and_is_complete(folder):
    page = (folder / 'report.html').read_text(encoding='utf-8')
    body = page[page.rindex('<body>'):]
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!#)', body)
    assert 'UR10 &lt;b&gt;&amp;' in body and '<b>&"odd"' not in body
    for text in ('ur10', 'good', 'wrist_3_joint', 'Fcl:elbow_joint', 'robodyn identify log',
                 '20195500123', 'A. Engineer', 'checked by', 'at most 8%', 'passed',
                 'limits kept', 'viscous friction, N m s/rad or N s/m', '0 (at bound)', 'sha256',
                 'What was not identifiable', 'physical consistency',
                 'simulated from 24 measured states', 'position error after 0.1 s of simulation'):
        assert text in body, text
    for chart in CHARTS:
        assert f'id="{chart}-chart"' in body


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason='there is no Chromium on this machine')
def test_a_browser_draws_every_chart(folder, tmp_path):
    dom = subprocess.run(
        [BROWSER, '--headless', '--no-sandbox', '--disable-gpu', '--virtual-time-budget=15000',
         f'--user-data-dir={tmp_path}', '--dump-dom', (folder / 'report.html').as_uri()],
        capture_output=True, text=True, timeout=120).stdout
    for chart in CHARTS:
        drawn = dom.split(f'id="{chart}-chart"', 1)[1]
        drawn = drawn[:drawn.index('</section>')]
        assert 'main-svg' in drawn, chart  # plotly has drawn it
    errors = dom.split('id="errors-chart"', 1)[1]
    assert errors[:errors.index('</section>')].count('class="point"') >= 18  # 3 bars a joint


def test_bodies_at_a_bound_are_marked():
    assert bounded(7e-9, 2.0) == '0 (at bound)' and bounded(0.01, 2.0) == '0.01'
    assert [unit_of(f'{term}:a') for term in ('Ixx', 'Ia', 'm', 'mz', 'Fvl', 'Fcm', 'Ftl')] == [
        'kg m²', 'kg m²', 'kg', 'kg m', 'N m s/rad', 'N m', 'none']


def test_the_spectrum_ends_at_the_cutoff_of_the_fit(folder):
    page = (folder / 'report.html').read_text(encoding='utf-8')
    highest = float(re.search(r'It is shown up to ([\d.e+]+) Hz', page)[1])
    filters = yaml.safe_load((folder / 'parameters.yaml').read_text())['filters']
    assert highest == pytest.approx(min(filters['cutoff'], filters['judged']), rel=1e-2)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason='there is no Chromium on this machine')
def test_it_prints_with_every_table_and_vector_charts(folder, tmp_path):
    """Also the sections that are folded on the screen; on a few pages of A4."""
    pdf = tmp_path / 'report.pdf'
    subprocess.run([BROWSER, '--headless', '--no-sandbox', '--disable-gpu',
                    f'--user-data-dir={tmp_path}', '--no-pdf-header-footer',
                    f'--print-to-pdf={pdf}', (folder / 'report.html').as_uri()],
                   capture_output=True, timeout=120)
    data = pdf.read_bytes()
    assert 5 <= len(re.findall(rb'/Type\s*/Page\b', data)) <= 20
    assert b'/Subtype /Image' not in data  # curves are vector graphics, not pixels
    if shutil.which('pdftotext') is None:
        pytest.skip('there is no pdftotext on this machine')
    text = subprocess.run(['pdftotext', '-layout', pdf, '-'], capture_output=True, text=True,
                          timeout=60).stdout
    for words in ('95 % without 0', 'checked by: name', 'velocity, rad/s', 'Fcl:elbow_joint'):
        assert words in text, words


def test_notebooks_show_tables_and_figures(outcome):
    """Texts from input files are escaped; every figure has labelled axes."""
    result, validation = outcome.result, outcome.validation
    for one, words in ((result, 'Fcl:elbow_joint'), (validation, 'at most 8%'),
                       (result.model, 'effort limit')):
        assert words in one._repr_html_() and '<table>' in one._repr_html_()
    checked = check_model(result.model, thorough=False)
    checked.issues.append(Issue('warning', 'link <b>', 'odd & wrong'))
    assert 'link &lt;b&gt;: odd &amp; wrong' in checked._repr_html_()
    for figure in (result.plot_parameters(), result.plot_friction(),
                   result.plot_singular_values(), result.plot_coverage(validation),
                   validation.plot_torque(), validation.plot_errors(),
                   validation.plot_spectrum()):
        assert figure.axes[-1].get_xlabel()
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert all(axis.get_ylabel() for axis in figure.axes) or ':' in names[0]


def test_the_result_as_a_data_frame(outcome):
    pytest.importorskip('pandas')
    frame = outcome.result.to_dataframe()
    assert list(frame.index) == list(outcome.result.base_.names)
    assert frame['significant'].sum() == len(outcome.result.significant_)
    assert (frame['interval_lower'] <= frame['estimate']).all()


def test_phases_are_logged(run):
    assert run[2][:2] == list(PHASES[:2]) and 'physical consistency' in run[2]


def test_an_excitation_can_be_plotted():
    model, _ = ur10()
    rng = np.random.default_rng(0)
    motion = rd.Excitation(model.joint_names, 10.0, 1, np.zeros(6), 0.1 * rng.normal(size=(3, 6)),
                           0.1 * rng.normal(size=(3, 6)))
    figure = motion.plot(model)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(model.joint_names)
    assert sum('over its limit' in axis.get_ylabel() for axis in figure.axes) == 3
