/* A driver that finds no device, as with CUDA_VISIBLE_DEVICES="". */
int cuInit(unsigned flags) {
	(void)flags;
	return 100;
}

int cuGetErrorName(int status, const char **name) {
	(void)status;
	*name = "CUDA_ERROR_NO_DEVICE";
	return 0;
}
