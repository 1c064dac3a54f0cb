"""How an instruction of each op joins a growing program: the table `STRATEGY`, one file a group of ops."""
