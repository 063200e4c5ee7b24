# SPDX-License-Identifier: MIT
"""cublaslt_sizes.py HEADER SOURCE: the comments of cublasLt.h state the types of attributes; they are
those that SOURCE sets and that the emulator (tests/cuda/blas.cpp) checks. Exits with 1 otherwise."""
import re
import sys

header, source = (open(path).read() for path in sys.argv[1:])
# Bytes that the emulator takes for each.
taken = {
    "CUBLASLT_MATMUL_DESC_TRANSA": 4,
    "CUBLASLT_MATMUL_DESC_TRANSB": 4,
    "CUBLASLT_MATMUL_DESC_EPILOGUE": 4,
    "CUBLASLT_MATMUL_DESC_BIAS_POINTER": 8,
    "CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE": 4,
    "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER": 8,
    "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD": 8,
    "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE": 4,
    "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": 8,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES": 4,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES": 4,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES": 4,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES": 4,
}
sizes = {"int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "void *": 8, "size_t": 8}


def stated(attribute):
    comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*%s\s*=" % attribute, header, re.S).group(1)
    types = re.findall(r"(u?int(?:32|64)_t|size_t|void ?\*)(?: based on cudaDataType)?,\s*default", comment)
    return sizes[types[-1].replace("void*", "void *")] if types else None


used = set(re.findall(r"CUBLASLT_MATMUL_(?:DESC|PREF)_\w+", source))
bad = [f"{a}: the header states {stated(a)} bytes, the emulator takes {taken[a]}"
       for a in taken if stated(a) != taken[a]]
bad += [f"{a} is set, and is not in the list of this script" for a in sorted(used - taken.keys())]
bad += [f"{a} is in the list, and not set" for a in sorted(taken.keys() - used)]
print("\n".join(bad) or f"{len(taken)} attributes have the types of the header")
sys.exit(bool(bad))
