"""What clouds billed: exports of bills and Cost Explorer -> charges, each as its cloud wrote it."""
