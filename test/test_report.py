"""The HTML report, opened in a real browser where there is one."""

import re
import shutil
import subprocess

import pytest
from measured_logs import ur10

import robodyn_ros as rd
from robodyn_ros.experiment.results import identify_and_write, split_logs

BROWSER = next((path for name in ('chromium', 'chromium-browser', 'google-chrome')
                if (path := shutil.which(name))), None)
CHARTS = ('errors', 'torque', 'spectrum', 'parameters', 'singular')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    model, log = ur10()
    where = tmp_path_factory.mktemp('run')
    log.source = 'UR10 <b>&"odd"</b>'
    logs, validation = split_logs([log], 0.7)
    outcome = identify_and_write(model, logs, validation, rd.Settings(friction='coulomb'), where,
                                 command='robodyn identify log --urdf ur10.urdf')
    assert {path.name for path in outcome.files} == {
        'identified.urdf', 'motors.yaml', 'parameters.png', 'parameters.yaml', 'report.html',
        'residual_spectrum.png', 'torque.png'}
    return where


def test_the_page_stands_alone_and_says_everything(folder):
    page = (folder / 'report.html').read_text(encoding='utf-8')
    body = page[page.rindex('<body>'):]
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!#)', body)
    assert 'UR10 &lt;b&gt;&amp;' in body and '<b>&"odd"' not in body
    for text in ('ur10', 'good', 'wrist_3_joint', 'Fcl:elbow_joint', 'robodyn identify log',
                 'sha256', 'What was not identifiable', 'Physical consistency'):
        assert text in body, text
    for chart in CHARTS:
        assert f'id="{chart}-chart"' in body


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
