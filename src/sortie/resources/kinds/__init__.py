"""What can be leased beside plain objects, one package per kind."""
