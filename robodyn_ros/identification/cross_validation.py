"""Cross-validation over runs: each log is predicted by a fit to all the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.identification.identify import identify
from robodyn_ros.identification.log import Log
from robodyn_ros.identification.result import Result
from robodyn_ros.identification.settings import Settings
from robodyn_ros.identification.validate import validate
from robodyn_ros.identification.validation import Validation
from robodyn_ros.model import Model
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

OUTLYING = 3.5  # robust standard deviations above the median, from which on a run is an outlier
NORMAL = 1.4826  # standard deviation over median absolute deviation of normal noise
NOTABLE = 0.5  # relative difference of the errors, below which no run is an outlier
FEWEST_FOR_OUTLIERS = 4  # runs


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Errors on runs that the fit has not seen, and how far the parameters scatter.

    Attributes
    ----------
    sources : tuple of str
        Names of the K runs.
    validations : tuple of Validation
        For each run, the validation of the fit to the others on it.
    whole : Result
        The fit to all runs.
    names : tuple of str
        Base parameters that every fit has.
    values : ndarray, shape (b,)
        Their estimates from all runs.
    deviation : ndarray, shape (b,)
        Their standard deviations by the fit to all runs.
    jackknife : ndarray, shape (b,)
        Their standard deviations by the differences between the fits that leave one run out
        (Efron and Stein 1981, doi 10.1214/aos/1176345462). They show whether those of the fit
        are too small, because its residuals do not contain the changes between runs.
    outliers : tuple of str
        Runs whose error is an outlier among those of the runs.
    """

    sources: tuple[str, ...]
    validations: tuple[Validation, ...]
    whole: Result
    names: tuple[str, ...]
    values: Array
    deviation: Array
    jackknife: Array
    outliers: tuple[str, ...]

    @property
    def errors(self) -> Array:
        """Relative error of the raw torque of each run, as a fraction, shape (K,)."""
        return np.array([one.total for one in self.validations])

    @property
    def spread(self) -> float:
        """Median ratio of the jackknife's standard deviations to those of the fit."""
        return float(np.median(safe_divide(self.jackknife, self.deviation, at_zero=np.inf)))

    def to_text(self) -> str:
        """Return the errors and the scatter as tables."""
        width = max(map(len, self.sources))
        lines = [f'  {"left out":{width}}  relative  filtered   nominal']
        for source, one in zip(self.sources, self.validations, strict=True):
            mark = '!' if source in self.outliers else ' '
            lines.append(f'{mark} {source:{width}} {one.total:9.2%} {one.total_filtered:9.2%} '
                         f'{one.nominal_total:9.2%}')
        width = max(map(len, self.names))
        lines += ['', f'  {"":{width}}  estimate  std of the fit  std between runs']
        lines += [f'  {name:{width}}{self.values[k]:10.4g}{self.deviation[k]:16.3g}'
                  f'{self.jackknife[k]:18.3g}' for k, name in enumerate(self.names)]
        lines.append(f'  between runs the parameters scatter {self.spread:.2g} times as much as '
                     'the fit says (median)')
        if self.outliers:
            lines.append(f'  runs that stand out: {", ".join(self.outliers)}')
        return '\n'.join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for YAML or JSON."""
        return {
            'runs': {source: {'total': one.total, 'total_filtered': one.total_filtered,
                              'nominal_total': one.nominal_total, 'verdict': one.verdict,
                              'outlier': source in self.outliers}
                     for source, one in zip(self.sources, self.validations, strict=True)},
            'parameters': {name: {'value': float(self.values[k]),
                                  'standard_deviation': float(self.deviation[k]),
                                  'standard_deviation_between_runs': float(self.jackknife[k])}
                           for k, name in enumerate(self.names)},
            'spread': self.spread}


def cross_validate(model: Model | RobotDynamics, logs: Sequence[Log],
                   settings: Settings | None = None, *,
                   progress: Callable[[str], None] | None = None) -> CrossValidation:
    """Fit to all runs but one, and validate on that one, for each run in turn.

    Filters, friction and prior are chosen anew in every fit, so that the run that is left out has
    no part in any choice.

    Parameters
    ----------
    model : Model or RobotDynamics
        The nominal robot.
    logs : sequence of Log
        At least two runs; if names repeat, their numbers are put in front of them.
    settings : Settings, optional
        Settings of the identification.
    progress : callable, optional
        Called with the name of the run that is left out.

    Raises
    ------
    IdentificationError
        If there are fewer than two logs.
    LogError
        If a log cannot be used.
    """
    runs = list(logs)
    sources = [log.source for log in runs]
    if len(runs) < 2:
        raise IdentificationError(f'there is {len(runs)} log; valid: at least two, each of which '
                                  'is left out once')
    if len(set(sources)) < len(sources):
        sources = [f'{k}: {source}' for k, source in enumerate(sources, 1)]
    report_progress = progress or (lambda text: None)
    report_progress('all runs')
    whole = identify(model, runs, settings)
    fits, validations = [], []
    for out, source in enumerate(sources):
        report_progress(f'without {source}')
        fits.append(identify(model, [log for k, log in enumerate(runs) if k != out], settings))
        validations.append(validate(fits[-1], runs[out]))
    names = [name for name in whole.base_.names if all(name in fit.base_.names for fit in fits)]
    places = [whole.base_.names.index(name) for name in names]
    estimates = np.array([[fit.estimate_.values[fit.base_.names.index(name)] for name in names]
                          for fit in fits])
    count = len(runs)
    jackknife = np.sqrt((count - 1) / count
                        * ((estimates - estimates.mean(axis=0)) ** 2).sum(axis=0))
    return CrossValidation(
        tuple(sources), tuple(validations), whole, tuple(names),
        whole.estimate_.values[places], whole.uncertainty_.deviation[places], jackknife,
        _outliers(sources, np.array([one.total for one in validations])))


def _outliers(sources: Sequence[str], errors: Array) -> tuple[str, ...]:
    """Return the runs whose error is far above those of the others."""
    if len(errors) < FEWEST_FOR_OUTLIERS:
        return ()
    middle = float(np.median(errors))
    scatter = NORMAL * float(np.median(np.abs(errors - middle)))
    limit = middle + max(OUTLYING * scatter, NOTABLE * middle)
    return tuple(source for source, error in zip(sources, errors, strict=True) if error > limit)
