"""The workbench: pages and REST over a history store; it computes nothing itself."""
