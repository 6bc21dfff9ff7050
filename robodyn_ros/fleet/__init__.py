"""Many robots and many logs: identified in parallel, stored as Parquet, compared over time.

Dask runs the identifications, on this machine or on a cluster; DuckDB and any other reader of
Parquet files answers questions about the results.
"""

from robodyn_ros.errors import FleetError
from robodyn_ros.fleet.catalogue import Catalogue, FleetLog, FleetRobot, read_catalogue
from robodyn_ros.fleet.findings import Findings, find
from robodyn_ros.fleet.merged import merge_results
from robodyn_ros.fleet.page import save_fleet_report
from robodyn_ros.fleet.run import Summary, identify_fleet
from robodyn_ros.fleet.search import search_excitations
from robodyn_ros.fleet.simulated import simulate_fleet
from robodyn_ros.fleet.store import query, read_results

__all__ = ['Catalogue', 'Findings', 'FleetError', 'FleetLog', 'FleetRobot', 'Summary', 'find',
           'identify_fleet', 'merge_results', 'query', 'read_catalogue', 'read_results',
           'save_fleet_report', 'search_excitations', 'simulate_fleet']
