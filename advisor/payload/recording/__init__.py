"""What a script does in one iteration: operators, memory, data, communication."""
