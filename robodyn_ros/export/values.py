"""Writes files of parameter values, which parametric exported code reads at run time."""

from __future__ import annotations

import hashlib

import numpy as np

from robodyn_ros._version import __version__
from robodyn_ros.model import Model

FORMAT = 1  # version of the file format


def structure_of(model: Model) -> str:
    """Return a SHA-256 of everything in a model except its standard parameters.

    Values fit an exported robot if this is the same for both, that is, if they have the same
    joints in the same order and poses, the same gears and the same gravity.
    """
    digest = hashlib.sha256()
    spinning = ~np.isnan(model.spin_axis[:, 0])
    for value in (FORMAT, model.joint_names, model.body_joints, model.parent, model.prismatic,
                  tuple(int(i) for i in np.asarray(model.carrier)[spinning])):
        digest.update(repr(value).encode())
    for array in (model.gravity, model.axis, model.rotation, model.translation, model.row,
                  model.offset, model.motor_row, spinning, model.spin_axis[spinning],
                  model.gear_ratio[spinning]):
        digest.update(repr(array.shape).encode() + (np.asarray(array, np.float64) + 0.0).tobytes())
    return digest.hexdigest()


def urdf_hash(model: Model) -> str:
    """Return the SHA-256 of the URDF from which a model was read; '' if there is none."""
    text = model.description.urdf
    if not text:
        return ''
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def values_text(model: Model, origin: str = '') -> str:
    """Return a file of parameter values for an exported robot in parametric form.

    Parameters
    ----------
    model : Model
        The robot with the parameters to write; SI units.
    origin : str
        Origin of the parameters, for information.
    """
    lines = ['# Dynamic parameters for code that `robodyn export --parametric` wrote.',
             f'robodyn_values: {FORMAT}',
             f'structure: {structure_of(model)}',
             f'robot: {_quoted(model.name)}',
             f'version: {__version__}',
             f'urdf_sha256: {_quoted(urdf_hash(model))}',
             f'origin: {_quoted(origin)}',
             'values:']
    lines += [f'- {float(value) + 0.0!r}  # {name}' for name, value in zip(
        model.parameter_names, model.standard_parameters, strict=True)]
    return '\n'.join(lines) + '\n'


def _quoted(text: str) -> str:
    return "'" + ' '.join(text.split()).replace("'", "''") + "'"


READER = '''
/* Returns the text after a key at the beginning of a line; NULL if there is no such line. */
static const char *value_of(const char *text, const char *key)
{{
    const size_t length = strlen(key);
    while (text != NULL) {{
        if (strncmp(text, key, length) == 0)
            return text + length;
        text = strchr(text, '\\n');
        if (text != NULL)
            text++;
    }}
    return NULL;
}}

int {prefix}_read_values(const char *text, {real} parameters[{count}])
{{
    {real} values[{count}];
    const char *place = value_of(text, "robodyn_values:");
    if (place == NULL || strtol(place, NULL, 10) != {format})
        return {upper}_VALUES_FORMAT;
    place = value_of(text, "structure: ");
    if (place == NULL || strncmp(place, {upper}_STRUCTURE, sizeof {upper}_STRUCTURE - 1) != 0)
        return {upper}_VALUES_STRUCTURE;
    place = value_of(text, "values:");
    for (int i = 0; i < {count}; i++) {{
        char *end;
        place = place == NULL ? NULL : value_of(place, "- ");
        if (place == NULL)
            return {upper}_VALUES_COUNT;
        values[i] = ({real})strtod(place, &end);
        /* a comma as decimal separator of the locale would end the number too early */
        if (end == place || (*end != ' ' && *end != '\\n' && *end != '\\r' && *end != '\\0')
            || values[i] - values[i] != 0)
            return {upper}_VALUES_NUMBER;
    }}
    if (place != NULL && value_of(place, "- ") != NULL)
        return {upper}_VALUES_COUNT;
    memcpy(parameters, values, sizeof values);
    return {upper}_VALUES_GOOD;
}}
'''

PAYLOAD = '''
typedef struct {{
    int body;
    {real} rotation[9], translation[3];
}} frame_on_body;

static const frame_on_body link_frames[{upper}_LINKS] = {{
{frames}
}};

int {prefix}_add_payload(const {real} parameters[{count}], {prefix}_link link,
        const {prefix}_payload *payload, {real} loaded[{count}])
{{
    const frame_on_body *frame;
    const {real} *inertia = payload->inertia, mass = payload->mass;
    {real} turned[9], com[3], square, *body;
    const {real} tensor[9] = {{inertia[0], inertia[1], inertia[2], inertia[1], inertia[3],
        inertia[4], inertia[2], inertia[4], inertia[5]}};
    const int rows[6] = {{0, 0, 0, 1, 1, 2}}, columns[6] = {{0, 1, 2, 1, 2, 2}};
    if ((int)link < 0 || link >= {upper}_LINKS)
        return 0;
    frame = &link_frames[link];
    for (int i = 0; i < 3; i++) {{
        com[i] = frame->translation[i];
        for (int j = 0; j < 3; j++) {{
            com[i] += frame->rotation[3 * i + j] * payload->com[j];
            turned[3 * i + j] = 0;
            for (int k = 0; k < 3; k++)
                turned[3 * i + j] += frame->rotation[3 * i + k] * tensor[3 * k + j];
        }}
    }}
    memmove(loaded, parameters, {count} * sizeof loaded[0]);
    body = loaded + {per_joint} * frame->body;
    square = com[0] * com[0] + com[1] * com[1] + com[2] * com[2];
    for (int e = 0; e < 6; e++) {{
        const int i = rows[e], j = columns[e];
        for (int k = 0; k < 3; k++)
            body[e] += turned[3 * i + k] * frame->rotation[3 * j + k];
        body[e] += mass * ((i == j ? square : 0) - com[i] * com[j]);
    }}
    body[6] += mass;
    for (int i = 0; i < 3; i++)
        body[7 + i] += mass * com[i];
    return 1;
}}
'''
