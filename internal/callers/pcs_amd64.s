#include "textflag.h"

// func PCs() (inner, outer uintptr)
TEXT ·PCs(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ 8(BP), AX
	MOVQ AX, inner+0(FP)
	MOVQ (BP), BX
	XORQ AX, AX
	TESTQ BX, BX
	JEQ  done
	MOVQ 8(BX), AX
done:
	MOVQ AX, outer+8(FP)
	RET
