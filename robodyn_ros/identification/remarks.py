"""Remarks for the user on the quality of an identification."""

from __future__ import annotations

import numpy as np

from robodyn_ros.identification.base_parameters import BaseParameters
from robodyn_ros.identification.estimation import Estimate
from robodyn_ros.identification.statistics import Uncertainty
from robodyn_ros.numerics import safe_divide
from robodyn_ros.spatial import Array

BIAS_IN_TORQUE = 1e-4  # relative change of the torque below which a bias is not reported
BIAS_DEVIATIONS = 2.0  # standard deviations above which a bias is reported, as in a test at 5 %
VAGUE_PARAMETERS = 1 / 3  # fraction of poorly determined parameters above which a remark is made
CORRELATED = (1.0, 3.0)  # Durbin-Watson statistics outside mean strong correlation, 2 means none
LISTED = 8  # most names in one sentence


def remarks(uncertainty: Uncertainty, base: BaseParameters, estimate: Estimate,
            bias: Array) -> list[str]:
    """Return remarks on how well the parameters are determined.

    Parameters
    ----------
    uncertainty : Uncertainty
        The uncertainty of the estimate.
    base : BaseParameters
        The b base parameters.
    estimate : Estimate
        Their estimate.
    bias : ndarray, shape (b,)
        Differences from the estimate by instrumental variables, in standard deviations.
    """
    notes = [f'{base.count} base parameters, condition number {uncertainty.condition:.4g}',
             *uncertainty.poorly_distinguished]
    relative = safe_divide(uncertainty.deviation, np.abs(estimate.values), at_zero=np.inf)
    vague = int((relative > 1).sum())
    if vague > base.count * VAGUE_PARAMETERS:
        notes.append(f'{vague} of {base.count} base parameters have a standard deviation larger '
                     'than their value: this motion excites the robot poorly')
    if abs(uncertainty.delay) > 2 * uncertainty.delay_deviation:
        notes.append(f'within a sample, the torques are {1e3 * uncertainty.delay:.3g} ms older '
                     'than the positions (standard deviation '
                     f'{1e3 * uncertainty.delay_deviation:.2g} ms); the estimate accounts for it')
    watson = uncertainty.durbin_watson
    if np.nanmin(watson) < CORRELATED[0] or np.nanmax(watson) > CORRELATED[1]:
        notes.append(f'Durbin-Watson statistics from {np.nanmin(watson):.2f} to '
                     f'{np.nanmax(watson):.2f}: the residuals are correlated in time, which the '
                     'standard deviations take into account')
    # a bias is reported only if it has an effect on the torques
    torque = np.linalg.norm(estimate.factor, axis=0) * uncertainty.deviation * np.abs(bias)
    noticeable = torque > BIAS_IN_TORQUE * np.linalg.norm(estimate.factor @ estimate.values)
    biased = [name for name, value, large in zip(base.names, bias, noticeable, strict=True)
              if abs(value) > BIAS_DEVIATIONS and large]
    if biased:
        notes.append('noise in the motion has biased these parameters, as the comparison with '
                     'instrumental variables shows: ' + ', '.join(biased[:LISTED])
                     + (', ...' if len(biased) > LISTED else ''))
    return notes
