/* Many threads make the first call at once; each must reach the library. */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { threads = 16 };

static pthread_barrier_t start;

static void *call(void *wrong) {
	char text[512];
	pthread_barrier_wait(&start);
	fakeVariadic(text, "%d %g %s", 1, 2.5, "three");
	*(int *)wrong = strcmp(text, "1 2.5 three") != 0;
	return NULL;
}

int main(void) {
	pthread_t thread[threads];
	int wrong[threads], sum = 0;
	pthread_barrier_init(&start, NULL, threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, call, &wrong[i]);
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		sum += wrong[i];
	}
	printf("%d of %d went wrong\n", sum, threads);
	return 0;
}
