"""Kinds of identification, friction models and methods, by name.

A kind says what is measured and which standard parameters of a model explain it. The names are in
this module, apart from the identification itself, so that the command line and the nodes can list
them without importing signal processing and solvers.
"""

from __future__ import annotations

from robodyn_ros.errors import UnknownNameError

# The kinds, with what each one needs and estimates:
# rigid: joint torques of a robot without friction and rotors; estimates the rigid bodies only.
# lumped: one torque for each joint; estimates bodies, rotors, and the sum of both sides' friction.
# links: joint torque sensors; estimates bodies and link-side friction.
# links_and_drives: joint and motor torques; estimates bodies, rotors, and friction of each side.
# drives: the difference of both torques; estimates rotors and motor-side friction.
KINDS = ('rigid', 'lumped', 'links', 'links_and_drives', 'drives')
# Kolyubin (section 5.4) calls three of them models 1 to 3.
ALIASES = {'model1': 'links', 'model2': 'links_and_drives', 'model3': 'drives'}
KIND_NAMES = (*KINDS, *ALIASES)
JOINT_TORQUE_KINDS = ('rigid', 'lumped', 'links')  # one measured torque for each joint suffices
ROTOR_KINDS = ('lumped', 'links_and_drives', 'drives')

# The parameters of each friction model besides viscous friction, Coulomb friction and offset.
FRICTION_TERMS: dict[str, tuple[str, ...]] = {
    'none': (), 'coulomb': (), 'asymmetric': ('Fa',), 'stribeck': ('Fs',), 'root': ('Fr',),
    'load': ('Ft',), 'rich': ('Fa', 'Fs', 'Fr'), 'chosen': ()}  # chosen: joint by joint
# auto: chosen by the error on data left out of the fit
FRICTION_NAMES = ('auto', *(name for name in FRICTION_TERMS if name != 'chosen'))
RESIDUAL_MODELS = ('none', 'gaussian_process')  # beyond rigid bodies and friction
METHODS = ('weighted', 'ordinary', 'huber', 'total', 'instrumental', 'didim', 'likelihood')


def kind_of(name: str) -> str:
    """Return the kind that a name or an alias refers to.

    Parameters
    ----------
    name : str
        One of `KINDS`, or an alias after Kolyubin: ``model1``, ``model2`` or ``model3``.

    Raises
    ------
    UnknownNameError
        There is no such kind.
    """
    if name not in KIND_NAMES:
        raise UnknownNameError('kind', name, KIND_NAMES)
    return ALIASES.get(name, name)


def joint_torque_kind(name: str) -> str:
    """Return the kind itself, or ``links`` if the kind also needs motor torques."""
    kind = kind_of(name)
    return kind if kind in JOINT_TORQUE_KINDS else 'links'
