# SPDX-License-Identifier: MIT
"""Starts the programs that the wheel contains, by the name of the command."""
import os
import sys


def main():
    site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.path.join(site, "dt", "_prefix", "bin", os.path.basename(sys.argv[0]))
    os.execv(program, [program, *sys.argv[1:]])
