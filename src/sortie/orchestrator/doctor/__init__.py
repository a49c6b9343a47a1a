"""`sortie doctor`: what this machine, a model, a run file or a run would have you change, most costly first."""
