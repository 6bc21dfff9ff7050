"""Writes the table through which a program loads the exported equations at run time.

The table and its header have the same types for all robots. So a controller loads the shared
library of any robot without being compiled for it.
"""

from __future__ import annotations

from importlib.resources import files

from robodyn_ros.export.functions import Function
from robodyn_ros.export.package import Package

HEADER = 'robodyn_plugin.h'

# the functions of the table in its order, with their arguments besides the parameters
TABLE: dict[str, tuple[str, ...]] = {
    'gravity': ('q',), 'coriolis': ('q', 'qd'), 'friction': ('q', 'qd'), 'mass_matrix': ('q',),
    'inverse_dynamics': ('q', 'qd', 'qdd'), 'forward_dynamics': ('q', 'qd', 'tau')}

PAYLOAD = '''
static int plugin_add_payload(const double *parameters, int link, double mass, const double *com,
        const double *inertia, double *loaded)
{{
    {prefix}_payload payload;
    payload.mass = mass;
    memcpy(payload.com, com, sizeof payload.com);
    memcpy(payload.inertia, inertia, sizeof payload.inertia);
    return {prefix}_add_payload(parameters, ({prefix}_link)link, &payload, loaded);
}}

static int plugin_read_values(const char *text, double *parameters)
{{
    return {prefix}_read_values(text, parameters);
}}
'''

SOURCE = '''/* The table of {prefix}.h for programs that load it at run time. */
#include "{prefix}.h"
#include "robodyn_plugin.h"

#include <stddef.h>
{includes}{functions}
static const robodyn_plugin table = {{
    ROBODYN_PLUGIN_VERSION, "{robot}", {upper}_URDF_SHA256, {upper}_JOINTS, {prefix}_joint_names,
    {parameters},
    {links},
    {entries},
    {payload},
}};

#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const robodyn_plugin *robodyn_plugin_table(void)
{{
    return &table;
}}
'''


def has_plugin(package: Package) -> bool:
    """Return whether the table can describe an export: 64-bit numbers, one for each joint."""
    return not (package.loops or package.model.floating or package.dialect.single)


def plugin_header(package: Package) -> str:
    """Return the header of the table, which is the same for all robots."""
    return files('robodyn_ros.export').joinpath(HEADER).read_text(encoding='utf-8')


def plugin_text(package: Package) -> str:
    """Return the source of the table of a robot."""
    prefix, upper = package.prefix, package.prefix.upper()
    functions = {function.name: function for function in package.functions}
    parts = [_wrapper(package, functions[name], arguments) for name, arguments in TABLE.items()
             if name in functions]
    entries = ', '.join(f'plugin_{name}' if name in functions else 'NULL' for name in TABLE)
    names = {'prefix': prefix, 'upper': upper}
    if package.parametric:
        links = package.payload_links.values()
        parts.append('\nstatic const char *const link_names[] = {\n' + ''.join(
            f'    {_quoted(link)},\n' for link in links) + '};\n')
        parts.append(PAYLOAD.format(**names))
    return SOURCE.format(
        **names, robot=_quoted(package.model.name)[1:-1],
        includes='#include <string.h>\n' if package.parametric else '', functions=''.join(parts),
        entries=entries,
        parameters=f'{upper}_PARAMETERS, {prefix}_parameter_names, {prefix}_parameters'
        if package.parametric else '0, NULL, NULL',
        links=f'{upper}_LINKS, link_names' if package.parametric else '0, NULL',
        payload='plugin_add_payload, plugin_read_values' if package.parametric else 'NULL, NULL')


def _wrapper(package: Package, function: Function, arguments: tuple[str, ...]) -> str:
    """Return a function of the table's type that calls an exported function."""
    taken = [name for name, _ in function.arguments]
    unused = ''.join(f'    (void){name};\n' for name in ('parameters', *arguments)
                     if name not in taken)
    declared = ', '.join(f'const double *{name}' for name in ('parameters', *arguments))
    return (f'\nstatic void plugin_{function.name}({declared},\n        double *result)\n{{\n'
            f'{unused}    {package.prefix}_{function.name}({", ".join((*taken, "result"))});\n'
            '}\n')


def _quoted(text: str) -> str:
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', ' ') + '"'
