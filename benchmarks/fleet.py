"""A fleet: throughput, overhead, memory of a worker, and detection. `python benchmarks/fleet.py`.

`python benchmarks/fleet.py ROBOTS LOGS` sets the size of the simulated fleet whose worn joints are
to be found; the default is 100 robots with 12 logs each.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from distributed import Client, LocalCluster

from robodyn_ros.fleet import (
    find,
    identify_fleet,
    read_catalogue,
    read_results,
    simulate_fleet,
)
from robodyn_ros.fleet.store import write_factors, write_rows
from robodyn_ros.fleet.work import Task, work

URDF = Path(__file__).parent.parent / 'urdf/articulated_3r.urdf.xacro'
WORN = 0.1  # fraction of the robots that have a worn joint
EMPTY_TASKS = 2000


def fleet(robots=100, logs=12):
    """Print all figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print('\nFleet of simulated 3R arms, logs of 10 s at 100 Hz\n\n'
              '| figure | value |\n|---|---|')
        throughput(folder)
        overhead(folder)
        memory(folder)
        detection(folder, robots, logs)


def throughput(folder):
    """Logs per minute with one worker and with two; each starts with compiled kernels."""
    simulate_fleet(folder / 'some', URDF, robots=8, logs=20, worn=0)
    catalogue = read_catalogue(folder / 'some/catalogue.yaml')
    rates = {}
    for workers in (1, 2):
        began = []

        def note(count, _, began=began):
            if count in (10, len(catalogue)):  # without the start of the workers
                began.append(time.perf_counter())

        identify_fleet(catalogue, folder / f'results{workers}', workers=workers, progress=note)
        rates[workers] = 60 * (len(catalogue) - 10) / (began[1] - began[0])
        print(f'| logs per minute, {workers} worker(s) | {rates[workers]:.0f} |', flush=True)
    print(f'| efficiency of two workers | {rates[2] / rates[1] / 2:.2f} |', flush=True)


def overhead(folder):
    """What the scheduler costs for each log, and the bytes that move."""
    catalogue = read_catalogue(folder / 'some/catalogue.yaml')
    (robot, log), *_ = catalogue
    task = Task(replace(robot, logs=()), log, catalogue.settings, catalogue.fit_fraction)
    began = time.process_time()
    done = work(task, frozenset())
    computing = time.process_time() - began
    writing = []
    for k in range(100):
        began = time.perf_counter()
        write_factors(folder, f'{k}', done.factors)
        write_rows(folder, f'{k}', done.rows)
        writing.append(time.perf_counter() - began)
    with LocalCluster(n_workers=2, threads_per_worker=1, host='127.0.0.1',
                      dashboard_address='127.0.0.1:0') as cluster, Client(cluster) as client:
        client.gather(client.map(abs, range(100), pure=False))
        began = time.perf_counter()
        client.gather(client.map(abs, range(EMPTY_TASKS), pure=False))
        seconds = (time.perf_counter() - began) / EMPTY_TASKS
    print(f"| Dask's time for a log, ms | {1e3 * seconds:.2f} |")
    writing = float(np.median(writing))
    print(f'| time to write the results of a log, ms | {1e3 * writing:.2f} |')
    print(f'| workers that one client and one scheduler keep busy | '
          f'{computing / (seconds + writing):.0f} |')
    print(f'| bytes to the worker, bytes back | {len(pickle.dumps(task))}, '
          f'{len(pickle.dumps(done))} |', flush=True)


def memory(folder):
    """Resident memory of this process over many logs, as a worker does them."""
    catalogue = read_catalogue(folder / 'some/catalogue.yaml')
    tasks = [Task(robot, log, catalogue.settings, catalogue.fit_fraction)
             for robot, log in catalogue]
    used = {}
    for count in range(1, 1001):
        work(tasks[count % len(tasks)], frozenset())
        if count in (100, 500, 1000):
            used[count] = psutil.Process().memory_info().rss / 1e6
    print('| memory after 100, 500, 1000 logs, MB | '
          + ', '.join(f'{value:.0f}' for value in used.values()) + ' |', flush=True)


def detection(folder, robots, logs):
    """How many worn joints are found, and how many alarms are false."""
    worn = round(WORN * robots)
    wear = simulate_fleet(folder / 'many', URDF, robots=robots, logs=logs, worn=worn, seed=1)
    summary = identify_fleet(read_catalogue(folder / 'many/catalogue.yaml'), folder / 'results')
    changes = find(read_results(folder / 'results')).changes
    alarms = set(zip(changes.robot, changes.joint, strict=True))
    real = {(one.robot, one.joint) for one in wear}
    print(f'| {robots} robots, {summary.logs} logs, {worn} joints with 20 % more friction | '
          f'{len(alarms & real)} found, {len(alarms - real)} false alarms |', flush=True)


if __name__ == '__main__':
    fleet(*map(int, sys.argv[1:]))
