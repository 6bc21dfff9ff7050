"""`ModelUncertainty`: how well the base parameters of an identified robot are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robodyn_ros.description.section import Section
from robodyn_ros.errors import LogError
from robodyn_ros.identification.result import Result
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array


@dataclass(frozen=True, eq=False)
class ModelUncertainty:
    """The covariance of identified base parameters.

    Attributes
    ----------
    names : tuple of str
        Names of the b base parameters.
    covariance : ndarray, shape (b, b)
        Their covariance, SI units.
    """

    names: tuple[str, ...]
    covariance: Array

    @classmethod
    def of(cls, result: Result) -> ModelUncertainty:
        """Return the uncertainty of an identification."""
        return cls(result.base_.names, result.uncertainty_.covariance)

    @classmethod
    def read(cls, path: str | Path) -> ModelUncertainty:
        """Read the uncertainty from the file ``parameters.yaml`` of an identification.

        Files of older versions hold only standard deviations.

        Raises
        ------
        LogError
            The file is not of this kind.
        """
        content = Section.read(Path(path), str(path), error=LogError)
        base = content.section('base_parameters')
        names = tuple(base)
        if not names:
            raise content.fail('base_parameters', 'is missing or empty',
                               'a file parameters.yaml that robodyn identify wrote')
        deviation = np.array([base.section(name).number('standard_deviation', least=0.0)
                              for name in names])
        correlation = np.eye(len(names))
        if 'correlation' in content:
            below = np.tril_indices(len(names), -1)
            correlation[below] = _numbers(content, 'correlation', len(below[0]))
            correlation = correlation + correlation.T - np.eye(len(names))
        return cls(names, correlation * np.outer(deviation, deviation))

    def correlation_text(self) -> str:
        """Return the correlations below the diagonal, row by row, as `read` expects them."""
        deviation = np.sqrt(np.diag(self.covariance))
        correlation = safe_divide(self.covariance, np.outer(deviation, deviation))
        return ' '.join(f'{value:.6g}' for value in correlation[
            np.tril_indices(len(deviation), -1)])

    def of_parameters(self, names: Sequence[str], unknown: Array) -> Array:
        """Return the covariance of base parameters by their names, shape (k, k).

        Parameters
        ----------
        names : sequence of str
            The k base parameters.
        unknown : ndarray, shape (k,)
            Standard deviations of those that were not identified.
        """
        covariance = np.diag(unknown**2)
        here = [k for k, name in enumerate(names) if name in self.names]
        there = [self.names.index(names[k]) for k in here]
        covariance[np.ix_(here, here)] = self.covariance[np.ix_(there, there)]
        return covariance


def _numbers(content: Section, key: str, count: int) -> Array:
    """Return the numbers, between -1 and 1, of a text."""
    try:
        values = np.array(content.text(key).split(), np.float64)
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not (np.abs(values) <= 1).all():
        raise content.fail(key, 'is not a text of correlations',
                           f'{count} numbers from -1 to 1')
    return values
