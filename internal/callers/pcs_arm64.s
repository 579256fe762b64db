#include "textflag.h"

// func PCs() (inner, outer uintptr)
TEXT ·PCs(SB), NOSPLIT|NOFRAME, $0-16
	MOVD 8(R29), R0
	MOVD R0, inner+0(FP)
	MOVD (R29), R1
	MOVD $0, R0
	CBZ  R1, done
	MOVD 8(R1), R0
done:
	MOVD R0, outer+8(FP)
	RET
