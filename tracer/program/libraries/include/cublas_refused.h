/* Names of cuBLAS that cutrace refuses when they are called. */
#define CUTRACE_OF_EACH(T) \
    CUTRACE_REFUSED(cublas##T##rot) CUTRACE_REFUSED(cublas##T##rotg) \
    CUTRACE_REFUSED(cublas##T##syr) CUTRACE_REFUSED(cublas##T##syr2) \
    CUTRACE_REFUSED(cublas##T##tbmv) CUTRACE_REFUSED(cublas##T##tbsv) \
    CUTRACE_REFUSED(cublas##T##tpmv) CUTRACE_REFUSED(cublas##T##tpsv) \
    CUTRACE_REFUSED(cublas##T##gbmv) CUTRACE_REFUSED(cublas##T##syr2k) \
    CUTRACE_REFUSED(cublas##T##syrkx) CUTRACE_REFUSED(cublas##T##gemvBatched) \
    CUTRACE_REFUSED(cublas##T##gemvStridedBatched) CUTRACE_REFUSED(cublas##T##trsmBatched) \
    CUTRACE_REFUSED(cublas##T##getrsBatched) CUTRACE_REFUSED(cublas##T##getriBatched) \
    CUTRACE_REFUSED(cublas##T##matinvBatched) CUTRACE_REFUSED(cublas##T##geqrfBatched) \
    CUTRACE_REFUSED(cublas##T##gelsBatched)
CUTRACE_OF_EACH(S)
CUTRACE_OF_EACH(D)
CUTRACE_OF_EACH(C)
CUTRACE_OF_EACH(Z)
#define CUTRACE_OF_REALS(T) \
    CUTRACE_REFUSED(cublas##T##rotm) CUTRACE_REFUSED(cublas##T##rotmg) \
    CUTRACE_REFUSED(cublas##T##spr) CUTRACE_REFUSED(cublas##T##spr2) \
    CUTRACE_REFUSED(cublas##T##sbmv) CUTRACE_REFUSED(cublas##T##spmv) \
    CUTRACE_REFUSED(cublas##T##tpttr) CUTRACE_REFUSED(cublas##T##trttp)
CUTRACE_OF_REALS(S)
CUTRACE_OF_REALS(D)
#define CUTRACE_OF_COMPLEX(T) \
    CUTRACE_REFUSED(cublas##T##hemv) CUTRACE_REFUSED(cublas##T##her) \
    CUTRACE_REFUSED(cublas##T##her2) CUTRACE_REFUSED(cublas##T##hpr) \
    CUTRACE_REFUSED(cublas##T##hpr2) CUTRACE_REFUSED(cublas##T##hbmv) \
    CUTRACE_REFUSED(cublas##T##hpmv) CUTRACE_REFUSED(cublas##T##herk) \
    CUTRACE_REFUSED(cublas##T##her2k) CUTRACE_REFUSED(cublas##T##herkx) \
    CUTRACE_REFUSED(cublas##T##hemm) CUTRACE_REFUSED(cublas##T##gemm3m)
CUTRACE_OF_COMPLEX(C)
CUTRACE_OF_COMPLEX(Z)
CUTRACE_REFUSED(cublasHgemmBatched)
CUTRACE_REFUSED(cublasGemmBatchedEx)
CUTRACE_REFUSED(cublasNrm2Ex)
CUTRACE_REFUSED(cublasAxpyEx)
CUTRACE_REFUSED(cublasRotEx)
CUTRACE_REFUSED(cublasUint8gemmBias)
CUTRACE_REFUSED(cublasLoggerConfigure)
CUTRACE_REFUSED(cublasGetLoggerCallback)
CUTRACE_REFUSED(cublasGetSmCountTarget)
CUTRACE_REFUSED(cublasGetAtomicsMode)
CUTRACE_REFUSED(cublasCsscal)
CUTRACE_REFUSED(cublasZdscal)
CUTRACE_REFUSED(cublasCsrot)
CUTRACE_REFUSED(cublasZdrot)
CUTRACE_REFUSED(cublasSgemmEx)
CUTRACE_REFUSED(cublasCgemmEx)
CUTRACE_REFUSED(cublasCherkEx)
CUTRACE_REFUSED(cublasCsyrkEx)
CUTRACE_REFUSED(cublasDotEx)
CUTRACE_REFUSED(cublasDotcEx)
CUTRACE_REFUSED(cublasScalEx)
CUTRACE_REFUSED(cublasSetLoggerCallback)
CUTRACE_REFUSED(cublasSetSmCountTarget)
#undef CUTRACE_OF_EACH
#undef CUTRACE_OF_REALS
#undef CUTRACE_OF_COMPLEX
