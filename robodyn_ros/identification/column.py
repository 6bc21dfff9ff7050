"""`Column`: one parameter of the linear model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One parameter of the linear model.

    Attributes
    ----------
    name : str
        ``PARAMETER:JOINT``.
    standard : int
        Index in ``model.standard_parameters``; -1 for friction terms beyond those.
    term : str
        The parameter, for example ``Ixx``, ``Fvl``, ``Fs``.
    body : int
        Index in ``model.body_joints``; -1 for the payload, and their number for a floating base.
    """

    name: str
    standard: int
    term: str
    body: int
