"""Plots and reports of identifications, excitations and tracking errors."""
