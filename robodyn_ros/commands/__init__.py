"""The command `robodyn`: one file for each of its commands, and what they share.

`main` lists the commands and imports only the file of the command that is run. Such a file has two
functions: ``add_arguments(parser)`` declares the arguments, and ``run(options)`` executes the
command and returns the exit code.
"""
