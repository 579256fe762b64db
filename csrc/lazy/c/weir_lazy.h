/*
 * What the lazy loader knows about a library that libcuda.a, libcublas.a or
 * libcusolver.a stands for. library is "cuda", "cublas" or "cusolver". Each of
 * these functions loads the library if nothing has called it yet. Texts belong
 * to the loader and stay valid; they are "" where there is nothing to say.
 */
#ifndef WEIR_LAZY_H
#define WEIR_LAZY_H

#ifdef __cplusplus
extern "C" {
#endif

/* weir_lazy_path is the file that was loaded, "" if none was. */
const char *weir_lazy_path(const char *library);

/*
 * weir_lazy_reason says why the library is of no use: what was looked for and
 * where, or what cuInit answered.
 */
const char *weir_lazy_reason(const char *library);

/* weir_lazy_has says whether the loaded library has the function. */
int weir_lazy_has(const char *library, const char *function);

/*
 * weir_lazy_missed is the last function that was called though the loaded
 * library lacks it, and forgets it; "" if there is none.
 */
const char *weir_lazy_missed(const char *library);

#ifdef __cplusplus
}
#endif

#endif
