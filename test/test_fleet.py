"""Fleets: catalogues, identification on Dask, results as Parquet, and what they say."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from robots import planar_2r

pytest.importorskip('distributed', reason='the extra [fleet] is not installed')
pandas = pytest.importorskip('pandas')

import robodyn_ros as rd  # noqa: E402
from robodyn_ros.commands.main import main  # noqa: E402
from robodyn_ros.excitation import Plan  # noqa: E402
from robodyn_ros.experiment.results import split_logs  # noqa: E402
from robodyn_ros.fleet import (  # noqa: E402
    FleetError,
    find,
    identify_fleet,
    merge_results,
    query,
    read_catalogue,
    read_results,
    search_excitations,
    simulate_fleet,
)
from robodyn_ros.fleet import cluster as fleet_cluster  # noqa: E402
from robodyn_ros.fleet.store import COLUMNS, known_keys, write_rows  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def fleet(tmp_path_factory):
    """Three robots with six logs each, one worn joint, and a log that was cut off."""
    folder = tmp_path_factory.mktemp('fleet') / 'logs'
    urdf = folder.with_name('arm.urdf')
    urdf.write_text(planar_2r(), encoding='utf-8')
    wear, = simulate_fleet(folder, urdf, robots=3, logs=6, worn=1, seconds=5.0)
    whole = sorted(folder.glob('robot_1/*/log.npz'))[-1]
    cut = folder / 'robot_1/2026-03-01/log.npz'
    cut.parent.mkdir()
    cut.write_bytes(whole.read_bytes()[:3000])
    return folder, wear


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    """A scheduler and two workers in processes of their own; (address, scheduler, workers)."""
    file = tmp_path_factory.mktemp('dask') / 'scheduler.json'
    usual = ['--scheduler-file', str(file), '--host', '127.0.0.1', '--no-dashboard']

    def start(kind, *more):
        return subprocess.Popen([sys.executable, '-m', f'distributed.cli.dask_{kind}', *usual,
                                 *more], stderr=subprocess.DEVNULL, cwd=file.parent)
    scheduler = start('scheduler', '--port', '0')
    workers = [start('worker', '--nthreads', '1', '--no-nanny') for _ in range(2)]
    import json

    from distributed import Client
    for _ in range(600):
        if file.exists():
            break
        time.sleep(0.1)
    address = json.loads(file.read_text())['address']
    with Client(address, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
    yield address, scheduler, workers
    for process in (*workers, scheduler):
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture(scope='module')
def results(fleet, cluster, tmp_path_factory):
    """The results: begun here, interrupted, and finished on a cluster that loses a worker."""
    folder, _ = fleet
    output = tmp_path_factory.mktemp('results')
    catalogue = read_catalogue(folder / 'catalogue.yaml')

    def interrupt(count, name):
        if count == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        identify_fleet(catalogue, output, workers=2, progress=interrupt)
    assert len(known_keys(output)) == 4
    address, _, workers = cluster

    def kill(count, name):
        if count == 6:
            os.kill(workers[0].pid, signal.SIGKILL)

    summary = identify_fleet(catalogue, output, scheduler=address, progress=kill)
    assert (summary.logs, summary.known, summary.bad) == (19, 4, 1)
    return output, summary


def test_nothing_is_lost_and_nothing_is_twice(fleet, results):
    frame = read_results(results[0])
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame.drop_duplicates('log')) == 19
    assert not frame.duplicated(['log', 'parameter']).any()


def test_a_log_that_is_cut_off_is_a_row_with_its_reason(results):
    bad = read_results(results[0]).query('status == "bad"')
    assert len(bad) == 1 and '2026-03-01' in bad.log.iloc[0]
    assert 'cannot be read' in bad.reason.iloc[0] and pandas.isna(bad.parameter.iloc[0])


def test_results_equal_those_of_one_log(fleet, results):
    path = fleet[0] / 'robot_2/2026-01-12/log.npz'
    model = rd.load_model(fleet[0] / 'robot.urdf')
    fit, held_out = split_logs([rd.read_log(path, rd.Dynamics(model))], 0.7)
    want = rd.identify(model, fit, friction='coulomb')
    validation = rd.validate(want, held_out)
    frame = read_results(results[0])
    own = frame[frame.log == str(path)].set_index('parameter')
    for row in want.rows():
        got = own.loc[row['parameter']]
        assert (got.estimate, got.standard_deviation, got.significant) == (
            row['estimate'], row['standard_deviation'], row['significant'])
    assert (own.total_error == validation.total).all()
    assert set(own.verdict) == {validation.verdict}


def test_the_worn_joint_is_found_and_no_other(fleet, results, tmp_path, capsys):
    _, wear = fleet
    findings = find(read_results(results[0]))
    assert set(zip(findings.changes.robot, findings.changes.joint, strict=True)) == {
        (wear.robot, wear.joint)}
    assert findings.changes.date.iloc[0].date().isoformat() == wear.since
    assert findings.changes.change.iloc[0] == pytest.approx(0.2, abs=0.06)
    assert findings.ranking.robot.iloc[0] == wear.robot
    page = tmp_path / 'fleet.html'
    assert main(['fleet', 'report', str(results[0]), '-o', str(page)]) == 0
    assert f'{wear.robot}: F' in capsys.readouterr().out
    text = page.read_text()
    assert f'{wear.robot}: Fcl:{wear.joint}' in text and 'http' not in text.replace(
        'http://www.w3.org', '').replace('http://purl.org', '').replace(
        'http://creativecommons.org', '').replace('https://matplotlib.org', '')
    assert main(['fleet', 'report', str(results[0]), '-o', str(page)]) == 2  # it exists


def test_questions_in_sql(results, capsys):
    counts = query(results[0], "select robot, count(distinct log) as logs from results "
                               "where status = 'ok' group by robot order by robot")
    assert counts.logs.tolist() == [6, 6, 6]
    assert main(['fleet', 'query', str(results[0]), 'select max(total_error) from results']) == 0
    assert main(['fleet', 'query', str(results[0]), 'select nonsense']) == 2
    assert 'nonsense' in capsys.readouterr().err


def test_all_logs_of_a_robot_are_one_fit(results, fleet, tmp_path, capsys):
    table = merge_results(results[0])
    frame = read_results(results[0])
    worn = fleet[1].robot
    for robot, own in table.groupby('robot'):
        assert own.logs.unique().tolist() == [6]
        single = frame[frame.robot == robot].groupby('parameter').estimate
        for row in own.itertuples():
            mean, low, high = (getattr(single, name)()[row.parameter]
                               for name in ('mean', 'min', 'max'))
            assert abs(row.estimate - mean) < high - low
        if robot != worn:
            assert (own.standard_deviation < 1.5 * own.of_one_log).mean() > 0.7
    out = tmp_path / 'merged.csv'
    assert main(['fleet', 'merge', str(results[0]), '-o', str(out), '--until',
                 '2026-01-20']) == 0
    assert '3 logs, 2026-01-05 to 2026-01-19' in capsys.readouterr().out.replace('\n', ' ')
    assert set(pandas.read_csv(out).logs) == {3}
    assert main(['fleet', 'merge', str(results[0]), '--since', '2027-01-01', '-o',
                 str(tmp_path / 'none.csv')]) == 2
    assert main(['fleet', 'merge', str(results[0]), '--since', 'spring', '-o',
                 str(tmp_path / 'none.csv')]) == 2
    assert 'ISO 8601' in capsys.readouterr().err


def test_the_best_of_several_searches_for_an_excitation_is_kept(cluster):
    model = rd.load_model(planar_2r())
    options = {'period': 2.0, 'harmonics': 2, 'starts': 1, 'budget': 60.0}
    found = search_excitations(model, None, Plan(**options), searches=2, scheduler=cluster[0])
    alone = [rd.optimise_excitation(model, seed=seed, **options) for seed in range(2)]
    best = min(alone, key=lambda motion: motion.facts['score'])
    assert found.facts['seed'] == best.facts['seed']
    assert found.facts['condition'] == best.facts['condition']
    with pytest.raises(rd.IdentificationError, match='height of'):
        search_excitations(model, rd.Limits(height=9.0), Plan(**{**options, 'budget': 1.0}),
                           searches=2, scheduler=cluster[0])


def test_a_scheduler_that_dies_ends_the_command_and_keeps_what_is_finished(
        fleet, results, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_cluster, 'ANSWERS_WITHIN', 3.0)
    address, scheduler, _ = cluster
    catalogue = read_catalogue(fleet[0] / 'catalogue.yaml')

    def kill(count, name):
        if count == 2:
            scheduler.kill()

    with pytest.raises(FleetError, match='the scheduler is gone'):
        identify_fleet(catalogue, tmp_path, scheduler=address, progress=kill)
    assert len(known_keys(tmp_path)) >= 2
    with pytest.raises(FleetError, match='no scheduler answers'):
        identify_fleet(catalogue, tmp_path, scheduler=address)


def test_tasks_that_a_cluster_cancels_are_submitted_again(fleet, tmp_path):
    """Somebody restarts the workers of a scheduler: what they knew is lost."""
    from distributed import Client, LocalCluster

    whole = read_catalogue(fleet[0] / 'catalogue.yaml')
    catalogue = replace(whole, robots=whole.robots[-1:])
    with LocalCluster(n_workers=1, threads_per_worker=1, host='127.0.0.1',
                      dashboard_address='127.0.0.1:0') as cluster, \
            Client(cluster) as other:
        def restart(count, name):
            if count == 2:
                other.restart()

        summary = identify_fleet(catalogue, tmp_path, scheduler=cluster.scheduler_address,
                                 progress=restart)
    assert (summary.logs, summary.fresh, summary.bad) == (6, 6, 0)
    assert len(known_keys(tmp_path)) == 6


def test_a_full_disk_leaves_no_half_file(tmp_path):
    script = (
        'import resource, sys\n'
        'from pathlib import Path\n'
        'from robodyn_ros.errors import OutputError\n'
        'from robodyn_ros.fleet.store import write_rows\n'
        'resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n'
        'try:\n'
        '    write_rows(Path(sys.argv[1]), "key", [{"robot": "left"}])\n'
        'except OutputError as error:\n'
        '    print(error)\n')
    done = subprocess.run([sys.executable, '-c', script, str(tmp_path)], capture_output=True,
                          text=True, timeout=120)
    assert 'cannot be written' in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def rows(robots, logs, rng, step=None):
    """Estimates of 20 parameters with noise; `step` raises one parameter of one robot by 20 %."""
    first = datetime(2026, 1, 5, tzinfo=timezone.utc)
    return pandas.DataFrame([
        {'robot': f'r{r}', 'type': 'arm', 'status': 'ok', 'joint': f'j{k // 4}',
         'parameter': f'p{k}', 'date': first + timedelta(weeks=i), 'log': f'{r}/{i}',
         'total_error': 0.02, 'reason': '', 'expression': f'p{k}', 'verdict': 'good',
         'standard_deviation': 0.001 if i == 3 else 0.02,  # one that is certain by chance
         'estimate': 1.0 + 0.1 * np.sin(r + k) + 0.03 * rng.normal()
         + (0.2 if step == (r, k) and i >= logs // 2 else 0.0)}
        for r in range(robots) for i in range(logs) for k in range(20)])


def test_noise_gives_no_change_and_a_step_of_20_percent_is_found_at_its_date(rng):
    assert not len(find(rows(40, 12, rng)).changes)
    changes = find(rows(40, 12, rng, step=(7, 5))).changes
    assert changes[['robot', 'parameter']].values.tolist() == [['r7', 'p5']]
    assert changes.date[0].date().isoformat() == '2026-02-16'


def test_a_folder_is_a_catalogue(tmp_path):
    (tmp_path / 'arm.urdf').write_text(planar_2r())
    for robot, day in (('left', '2026-02-01'), ('left', '2026-01-01'), ('right', '2026-01-01')):
        bag = tmp_path / robot / day / 'bag'
        bag.mkdir(parents=True)
        (bag / 'metadata.yaml').write_text('')
    found = read_catalogue(tmp_path)
    assert [robot.name for robot in found.robots] == ['left', 'right'] and len(found) == 3
    assert [log.date[:10] for log in found.robots[0].logs] == ['2026-01-01', '2026-02-01']
    (tmp_path / 'left' / 'own.urdf').write_text(planar_2r())
    assert {robot.name: robot.type for robot in read_catalogue(tmp_path).robots} == {
        'left': 'own', 'right': 'arm'}


@pytest.mark.parametrize('text, words', [
    ('robots: [{name: a, logs: x}]', 'has no description'),
    ('robots: [{name: a, urdf: x.urdf, logs: "*.mcap"}]', 'no log matches'),
    ('robots: [{name: a, urdff: x}]', "did you mean 'urdf'"),
    ('identify: {friction: sticky}', 'sticky'),
])
def test_errors_of_a_catalogue_name_what_is_wrong(tmp_path, text, words):
    path = tmp_path / 'catalogue.yaml'
    path.write_text(text)
    with pytest.raises(rd.RobodynError, match=words):
        read_catalogue(path)


def test_logs_may_lie_on_any_file_system(fleet, tmp_path):
    """A URL of fsspec: the file is copied to the worker."""
    from robodyn_ros.fleet.work import Task, work

    catalogue = tmp_path / 'catalogue.yaml'
    catalogue.write_text(f'robots: [{{name: far, urdf: "file://{fleet[0]}/robot.urdf", '
                         f'logs: "file://{fleet[0]}/robot_2/*/log.npz"}}]\n'
                         'identify: {friction: coulomb}')
    found = read_catalogue(catalogue)
    (robot, log), *_ = found
    assert log.url.startswith('file://') and log.date == '2026-01-05T00:00:00'
    done = work(Task(robot, log, found.settings, found.fit_fraction), frozenset())
    assert done.rows[0]['status'] == 'ok', done.rows
    assert work(Task(robot, log, found.settings, found.fit_fraction),
                frozenset([done.key])).rows is None
    write_rows(tmp_path, done.key, done.rows)
    assert Path(tmp_path / f'{done.key}.parquet').exists()
