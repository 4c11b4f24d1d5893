"""Every function of the C interface is called by the sequences of test/fuzz, or stands here with the reason.

  c_api_complete.py HEADER SEQUENCE.cc
"""

import re
import sys

EXCEPTED = {
    "tenon_c_api_version": "a constant",
    "tenon_constructor_find": "inline; reads a program's text only",
    "tenon_function_find": "finds functions of the whole process, which a sequence mustn't call",
    "tenon_function_threads": "of the function that runs now: limits have tests of their own",
    "tenon_host_check_set": "one per process; src/c_api tests it",
    "tenon_library_load": "runs the library's code; src/c_api tests it",
    "tenon_machine_create": "without limits, a program may run forever; tenon_machine_create_with does the same",
    "tenon_object_release": "tenon_any_release is it, of a value",
    "tenon_object_retain": "tenon_any_copy is it, of a value",
    "tenon_program_load": "of a path; tenon_program_from_bytes reads the same files",
    "tenon_program_load_with": "likewise",
    "tenon_register_library": "a library's own function",
    "tenon_threads_lend": "one per process; src/c_api tests it",
    "tenon_version": "a constant",
}


def main(header: str, sequence: str) -> int:
    declared = set(re.findall(r"\b(tenon_[a-z_]+)\(", open(header).read()))
    code = re.sub(r'"(\\.|[^"\\])*"', '""', open(sequence).read())  # the names in messages aren't calls
    called = set(re.findall(r"\b(tenon_[a-z_]+)\b", code))
    problems = [f"{name} is never called" for name in sorted(declared - called - EXCEPTED.keys())]
    problems += [f"{name} is excepted, but called" for name in sorted(EXCEPTED.keys() & called)]
    problems += [f"{name} is excepted, but isn't declared" for name in sorted(EXCEPTED.keys() - declared)]
    print("\n".join(problems) or f"{len(declared)} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
