"""The ament_python package robodyn_ros, which pip installs as well (the library alone)."""

import sys
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = 'robodyn_ros'
# beside the core; `import robodyn_ros` needs none of them
EXTRAS = {
    'equations': ['sympy'],
    'formats': ['h5py', 'pyarrow'],
    'identify': ['clarabel', 'jinja2', 'matplotlib', 'plotly', 'rich', 'rosbags', 'scipy',
                 'threadpoolctl'],
    'residual': ['scikit-learn', 'scipy'],
    'sim': ['mujoco'],
    'meshes': ['scipy', 'trimesh'],
    'demo': ['matplotlib', 'mujoco', 'rich', 'scipy'],
    'notebook': ['pandas'],
    'view': ['scipy', 'trimesh', 'viser'],
    'fleet': ['clarabel', 'dask', 'distributed', 'duckdb', 'fsspec', 'jinja2', 'matplotlib',
              'pandas', 'plotly', 'pyarrow', 'rich', 'rosbags', 'scipy', 'threadpoolctl'],
    'docs': ['furo', 'myst-parser', 'numpydoc', 'sphinx', 'sphinx-copybutton'],
}
# pip puts all scripts on PATH, where a name has to say whose it is; colcon puts them into
# lib/robodyn_ros, where `ros2 run` looks, and one more on PATH
PIP = any('wheel' in word or word == 'dist_info' for word in sys.argv)
COMMAND = [] if PIP else [('bin', ['tools/robodyn'])]
NODES = ('dynamics', 'feedforward', 'identification', 'observer', 'simulator', 'gazebo_bridge')


def files(target, folder, pattern):
    """Return the entry of `data_files` for the files of a folder."""
    return (f'share/{NAME}/{target}', [name for name in sorted(glob(f'{folder}/{pattern}'))
                                       if Path(name).is_file()])


setup(
    name=NAME,
    version='0.1.0',
    description='The dynamics of any robot that has a URDF: gravity, Coriolis, inertia and '
                'feed-forward torques, and the identification of its true parameters',
    # with --symlink-install colcon runs a link to this file in another folder
    long_description=Path(__file__).resolve().with_name('README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    author='The robodyn_ros authors',
    maintainer='The robodyn_ros maintainers',
    keywords='ROS robotics dynamics URDF identification feed-forward',
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Developers',
        'Intended Audience :: Science/Research',
        'License :: OSI Approved :: Apache Software License',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Topic :: Scientific/Engineering',
        'Typing :: Typed',
    ],
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'report/*.jinja', 'report/*.css', 'fleet/*.jinja',
                         'export/*.h', 'reproduce/*.yaml']},
    python_requires='>=3.10',
    install_requires=['llvmlite>=0.39', 'lxml', 'numpy', 'PyYAML', 'urdfdom-py', 'xacro'],
    extras_require={**EXTRAS, 'all': sorted({
        name for key in ('identify', 'residual', 'sim', 'meshes', 'demo', 'notebook', 'view',
                         'formats', 'fleet', 'equations')
        for name in EXTRAS[key]})},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        files('launch', 'launch', '*.launch.py'),
        files('config', 'config', '*.yaml'),
        files('config/layouts', 'config/layouts', '*'),
        files('config/security', 'config/security', '*.xml'),
        files('config/robots', 'config/robots', '*.yaml'),
        files('examples', 'examples', '*.py'),
        files('examples/ros2', 'examples/ros2', '*.py'),
        files('examples/ros2_control', 'examples/ros2_control', '*'),
        files('urdf', 'urdf', '*.xacro'),
        *(files(folder, folder, '*.md') for folder in (
            'docs', 'docs/tutorials', 'docs/howto', 'docs/reference', 'docs/explanation')),
        files('docs/images', 'docs/images', '*'),
        *COMMAND,
    ],
    zip_safe=True,
    entry_points={'console_scripts': [
        'robodyn = robodyn_ros.commands.main:main',
        *(f'robodyn-{node} = robodyn_ros.commands.executables:{node}' if PIP else
          f'{node} = robodyn_ros.nodes.{node}:main' for node in NODES),
    ]},
)
