"""What train.py is made of: configuration, run directories, callbacks."""
