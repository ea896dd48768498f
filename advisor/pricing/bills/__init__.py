"""What a bill holds besides the list price: contracts, disks, data that leaves."""
