#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a script of Python until it has understood its arguments: until-parsed.py SCRIPT ARGUMENT...

Modules that it imports before, and that are not here, are stand-ins. Exit status 0 if the
arguments were understood, that of the script if not.
"""
import argparse, importlib.abc, importlib.machinery, runpy, sys, types, unittest.mock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: unittest.mock.MagicMock()
        return module

    def exec_module(self, module):
        pass


understand = argparse.ArgumentParser.parse_args


def parse_args(self, *arguments):
    understand(self, *arguments)
    sys.exit(0)


argparse.ArgumentParser.parse_args = parse_args
sys.meta_path.append(StandIns())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
sys.exit("has not looked at its arguments")
