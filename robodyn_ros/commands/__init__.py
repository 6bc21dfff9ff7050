"""The command `robodyn`: one file for each of its commands, and what they share.

`main` knows the names of the commands and imports the file of the one that is run. Such a file has
two functions: ``add_arguments(parser)`` declares the arguments, ``run(options)`` does the work and
returns the exit code.
"""
