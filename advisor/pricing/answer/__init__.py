"""What several sources know -> one price for each machine."""
