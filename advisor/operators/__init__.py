"""What an operator is: its family, its FLOPs and its bytes."""
