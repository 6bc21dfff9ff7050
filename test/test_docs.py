"""The pages of the documentation: their examples run as they stand, and the site builds."""

import ast
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path

import pytest

import robodyn_ros as rd

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r'^```(\w+)\n(.*?)^```', re.DOTALL | re.MULTILINE)
PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs/tutorials').glob('*.md'))]


def blocks(page):
    """Return (language, text) of every block of code of a page."""
    return BLOCK.findall(page.read_text(encoding='utf-8'))


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder in which the repository's files lie where the pages expect them."""
    for name in ('urdf', 'config', 'test', 'examples'):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize('page', [p for p in PAGES if '```python' in p.read_text()],
                         ids=lambda page: page.stem)
def test_python_on_a_page_prints_what_the_page_says(page, work):
    namespace, printed, compared = {}, None, 0
    for language, text in blocks(page):
        if language == 'python':
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, page.name, 'exec'), namespace)
            printed = output.getvalue()
        elif language == 'text' and printed is not None:
            assert printed == text
            printed, compared = None, compared + 1
    assert compared


def test_notebooks_are_the_tutorials(tmp_path):
    """Their code and output are those of the pages, which the test above runs."""
    import runpy

    written = runpy.run_path(str(ROOT / 'docs/notebooks.py'))['write_notebooks'](tmp_path)
    assert [path.stem for path in written] == ['first_torques', 'identify_ur10']
    for path in written:
        notebook = json.loads(path.read_text())
        assert (notebook['nbformat'], notebook['nbformat_minor']) == (4, 5)
        code = [cell for cell in notebook['cells'] if cell['cell_type'] == 'code']
        shown = blocks(ROOT / f'docs/tutorials/{path.name}'.replace('.ipynb', '.md'))
        assert [cell['source'] for cell in code] == [
            text.rstrip() for language, text in shown if language == 'python']
        outputs = [output['text'] for cell in code for output in cell['outputs']]
        assert outputs == [text for (before, _), (language, text) in zip(
            shown[:-1], shown[1:], strict=True) if (before, language) == ('python', 'text')]
        assert outputs
        prose = ' '.join(cell['source'] for cell in notebook['cells'])
        assert '```python' not in prose and 'folder of the repository' in prose
        identities = [cell['id'] for cell in notebook['cells']]
        assert len(set(identities)) == len(identities)


def commands(page):
    """Return the `robodyn` commands of a page that need no file of the reader's own, and no node.

    test_docs_ros2.py runs those that need running nodes.
    """
    lines = [line for language, text in blocks(page) if language == 'bash'
             for line in text.splitlines()]
    return [line for line in lines if line.startswith('robodyn ') and 'my_' not in line
            and 'calibrate' not in line]


@pytest.mark.slow
@pytest.mark.parametrize('line', [line for page in PAGES for line in commands(page)])
def test_a_command_of_a_tutorial_runs(line, work):
    command, _, target = line.partition(' > ')
    done = subprocess.run([sys.executable, '-m', 'robodyn_ros.commands.main',
                           *shlex.split(command, comments=True)[1:]],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if target:
        (work / target.strip()).write_text(done.stdout)
        assert done.stdout


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip('rclpy', reason='the parameters of the nodes are part of the site')
    pytest.importorskip('furo', reason='the site needs Sphinx and its theme')
    done = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-q', '-W', '--keep-going', '-b', 'html',
         '-d', tmp_path / 'doctrees', ROOT / 'docs', tmp_path / 'site'],
        capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = tmp_path / 'site/reference/generated/command_line.html'
    assert 'robodyn identify' in page.read_text()


def warning_kinds():
    """Every kind with which the nodes and the controller warn, read from their code."""
    calls = {'warn', '_warn', 'drop', '_drop_beyond', 'StateError', 'ReferenceRefused'}
    found = {'errors', 'superseded', 'reference_dropped',
             *(f'implausible_{what}' for what in ('position', 'jump', 'velocity'))}
    for path in [*(ROOT / 'robodyn_ros/nodes').glob('*.py'),
                 *(ROOT / 'robodyn_ros/control').glob('*.py')]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(
                    node.func, 'attr', getattr(node.func, 'id', '')) in calls:
                found |= {one.value for one in node.args if isinstance(one, ast.Constant)
                          and re.fullmatch('[a-z]+(_[a-z]+)*', str(one.value))}
    return found


def rows(page, heading):
    """The names in the first column of the table after a heading."""
    text = page.read_text(encoding='utf-8').partition(heading)[2]
    return re.findall(r'^\| `(\w+)` \|', re.split(r'^##? ', text, maxsplit=1, flags=re.M)[0], re.M)


def test_troubleshooting_has_every_warning_and_every_error():
    from robodyn_ros import errors
    from robodyn_ros.control.player import ReferenceRefused

    page = ROOT / 'docs/howto/troubleshooting.md'
    kinds, classes = rows(page, '## Warnings of the nodes'), rows(page, '## Errors')
    assert kinds == sorted(warning_kinds())
    ours = {name for name, one in vars(errors).items() if isinstance(one, type)
            and issubclass(one, errors.RobodynError)} | {ReferenceRefused.__name__}
    assert set(classes) == ours and len(classes) == len(ours)


def test_the_page_of_files_has_every_key():
    from robodyn_ros.description import effort, motor_yaml
    from robodyn_ros.dynamics import loops
    from robodyn_ros.simulation import truth

    page = ROOT / 'docs/reference/files.md'
    text = page.read_text(encoding='utf-8')
    formats = [field.name for field in fields(rd.LogFormat)]
    for heading, keys in (('## Motors', (*motor_yaml._KEYS, *motor_yaml._JOINT_KEYS,
                                         *effort.KEYS)),
                          ('## Closed loops', (*loops.KEYS, *loops.CUT_KEYS)),
                          ('## Format of logs', formats)):
        assert set(rows(page, heading)) == set(keys), heading
    for key in (*motor_yaml._FRICTION_KEYS, *motor_yaml.CURVE, *truth._LINK_KEYS,
                *truth._JOINT_KEYS):
        assert f'`{key}`' in text, key


def test_the_page_of_the_verdict_has_every_threshold_with_its_default():
    text = (ROOT / 'docs/explanation/verdict.md').read_text(encoding='utf-8')
    stated = dict(re.findall(r'^\| `(\w+)` \| ([\d.e]+) \|', text, re.M))
    assert {name: float(value) for name, value in stated.items()} == asdict(rd.Thresholds())


def test_every_source_has_a_title_and_an_identifier():
    """Each line has a title, a year and a DOI, an ISBN or the page of the publisher.

    The text of a DOI is that of its link; an ISBN has a valid check digit.
    """
    text = (ROOT / 'docs/explanation/sources.md').read_text(encoding='utf-8')
    lines = [line for line in text.splitlines() if line.startswith('| ') and
             not line.startswith('| method')]
    assert len(lines) > 20
    for line in lines:
        assert re.search(r', \*[^*]+\*, [^|\[]+ (19|20)\d\d, ', line), line
        doi = re.search(r'\[(10\.\d{4,}/[^\]]+)\]\(https://doi\.org/(\S+)\) \|$', line)
        isbn = re.search(r'ISBN ([\d-]+) \|$', line)
        page = re.search(r'\[page of the publisher\]\(https://\S+\) \|$', line)
        assert doi or isbn or page, line
        if doi:
            assert doi[1] == doi[2]
        elif isbn:
            digits = [int(one) for one in isbn[1] if one.isdigit()]
            assert len(digits) == 13
            assert sum(digits[::2]) % 10 == -3 * sum(digits[1::2]) % 10, line


THEORY = ROOT / 'docs/explanation/theory.md'
LAST_EQUATIONS = {  # of each chapter of a text, which the page has to cover without a gap
    'Kolyubin': {1: 19, 2: 41, 3: 8, 4: 8, 5: 30}, 'Velagić': {4: 99}, 'Luh-Walker-Paul': {4: 59},
    'Technion': {0: 5}}


def rows_of(text):
    lines = [line for line in text.splitlines() if re.match(r'\| [^-]', line)]
    return [[cell.strip() for cell in line.strip('| ').split(' | ')] for line in lines[1:]]


def test_theory_names_files_and_tests_that_exist():
    rows = rows_of(THEORY.read_text(encoding='utf-8').split('\n## ')[0])
    assert len(rows) > 35
    for what, _, _, reference, files, tests in rows:
        assert re.fullmatch(r'\[(10\..+)\]\(https://doi.org/\1\)', reference), (what, reference)
        for folder, cell in (('robodyn_ros', files), ('test', tests)):
            for name in re.findall(r'`([^`]+)`', cell):
                assert (ROOT / folder / name).exists(), (what, name)


@pytest.mark.parametrize('text', LAST_EQUATIONS)
def test_every_equation_of_the_texts_is_in_theory(text):
    whole = THEORY.read_text(encoding='utf-8')
    known = {row[0] for row in rows_of(whole.split('\n## ')[0])}
    page = re.search(rf'\n### {text}\n(.*?)(?=\n##)', whole, re.DOTALL)[1]
    covered = set()
    for numbers, _, where in rows_of(page):
        for name in re.split('; ', re.sub(r'[.:(].*', '', where)):
            reason = not numbers[0].isdigit() or 'principles' in where or 'derivation' in where
            assert name in known or any(name.startswith(one) for one in known) or reason, name
        for chapter, first, _, last in re.findall(r'\b(?:(\d)\.)?(\d+)(?:-(?:(\d)\.)?(\d+))?',
                                                  numbers.split(',')[0]):
            if re.match(r'\d', numbers):
                covered |= {(int(chapter or 0), k)
                            for k in range(int(first), int(last or first) + 1)}
    wanted = {(chapter, k + 1) for chapter, last in LAST_EQUATIONS[text].items()
              for k in range(last)}
    assert wanted <= covered, sorted(wanted - covered)


def test_what_is_cited_elsewhere_is_among_the_sources():
    page = ROOT / 'docs/explanation/sources.md'
    files = {*(ROOT / 'docs').rglob('*.md'), *(ROOT / 'robodyn_ros').rglob('*.py')} - {page}
    text = '\n'.join(file.read_text(encoding='utf-8') for file in sorted(files))
    cited = set(re.findall(r'doi(?:\.org/| )(10\.\d{4,}/[^\s,]*\w)', text))
    assert cited
    sources = page.read_text(encoding='utf-8')
    assert {doi for doi in cited if f'](https://doi.org/{doi})' not in sources} == set()


def test_the_readme_is_short():
    text = re.sub(r'```.*?```', '', (ROOT / 'README.md').read_text(), flags=re.DOTALL)
    assert len(text.split()) <= 600


def test_links_of_the_readme_exist():
    for target in re.findall(r'\]\(([^)#:]+)\)', (ROOT / 'README.md').read_text()):
        assert (ROOT / target).exists(), target


def test_every_test_that_the_page_of_faults_names_exists():
    page = (ROOT / 'docs/reference/faults.md').read_text()
    named = re.findall(r'`([\w/]+\.py)::(test_\w+)`', page)
    assert len(named) > 50
    for file, name in named:
        assert f'def {name}(' in (ROOT / 'test' / file).read_text(), f'{file}::{name}'
    rows = [line for line in page.splitlines() if line.startswith('| ') and 'test' in line]
    assert all('::test_' in row or row.endswith('| test |') or row.endswith('| the same |')
               for row in rows)


def test_every_warning_of_a_node_is_explained():
    page = (ROOT / 'docs/howto/troubleshooting.md').read_text()
    sources = [path.read_text() for room in ('nodes', 'control')
               for path in (ROOT / 'robodyn_ros' / room).glob('*.py')]
    kinds = {kind for text in sources for kind in re.findall(r"warn\('(\w+)'", text)}
    assert len(kinds) > 15
    assert not [kind for kind in kinds if f'`{kind}`' not in page]
