"""The ament_python package robodyn_ros."""

from glob import glob

from setuptools import find_packages, setup

NAME = 'robodyn_ros'

setup(
    name=NAME,
    version='0.1.0',
    description='The dynamics of any robot that has a URDF, on ROS 2 topics',
    license='Apache-2.0',
    maintainer='robodyn_ros maintainers',
    maintainer_email='maintainers@robodyn.example',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'report/*.jinja']},
    python_requires='>=3.10',
    install_requires=['clarabel', 'jinja2', 'llvmlite', 'lxml', 'matplotlib', 'mujoco', 'numpy',
                      'plotly', 'PyYAML', 'rich', 'rosbags', 'scipy', 'trimesh', 'urdfdom-py',
                      'xacro'],
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        (f'share/{NAME}/launch', glob('launch/*.launch.py')),
        (f'share/{NAME}/config', glob('config/*.yaml')),
        (f'share/{NAME}/config/layouts', glob('config/layouts/*')),
        (f'share/{NAME}/examples/ros2_control', glob('examples/ros2_control/*')),
        (f'share/{NAME}/config/robots', glob('config/robots/*.yaml')),
        (f'share/{NAME}/urdf', glob('urdf/*.xacro')),
    ],
    zip_safe=True,
    entry_points={'console_scripts': [
        'robodyn = robodyn_ros.cli:main',
        'dynamics = robodyn_ros.nodes.dynamics:main',
        'feedforward = robodyn_ros.nodes.feedforward:main',
        'identification = robodyn_ros.nodes.identification:main',
        'simulator = robodyn_ros.nodes.simulator:main',
    ]},
)
