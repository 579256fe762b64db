/* Takes the calls of fakeSwapped, as fake.txt says. */
int fakeInstead(int a);
int fakeInstead(int a) { return 2 * a; }
