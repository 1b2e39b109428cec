"""Fronts that reproduce other tools number for number, on karat's own formulas."""
