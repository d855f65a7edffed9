"""Simulations of forecasts are forks, as in the tests of forecasts."""

from forecasting.conftest import forked

__all__ = ["forked"]
