// Package bench measures Weir beside its floors: what the same work costs
// without Weir, measured in the same run, on the same data, in turns.
//
// A Scenario is a question and has cases; a case has a value (Weir), a floor
// (a direct call of the BLAS, a mutex, a record of the driver) and perhaps a
// Limit, the figure that Weir promises. Run first checks that both compute the
// same, then times them in short alternating rounds (value, floor, value, …),
// so that a busy machine disturbs both alike. It reports the median of each,
// their ratio, and the quartiles of the rounds' ratios as the spread. Times
// are per operation: lower is better, and a ratio of 1 is the floor itself.
//
// A failed check is an error and fails the run. A limit that is not reached is
// reported and does not, since a busy machine can miss any time.
//
// Of a GPU the floor is package csrc/floor, loops in C that know nothing of Weir;
// those scenarios are built with the tag cuda. A scenario that says nothing about
// the device is skipped, and says so.
//
// Peers are other libraries, NumPy, PyTorch, CuPy and JAX, where Python has them.
// A Trial describes its work to them as data; they do it in a child process, after
// the rounds of value and floor and in rounds of their own, which end when the
// device is done. What they compute is checked, and one that is wrong, fails or
// hangs is reported and fails nothing.
//
// WriteRun and WriteJSON save a run with what it depends on and every round, and
// ReadSaved reads it back. Compare says what changed between two runs, by
// benchstat's statistics. Plots and WriteMarkdown show one.
//
// Ownership: a case's Trial is closed before the next one opens; Peers, with their
// process and folder, are the caller's to close. Concurrency: Run is for one
// goroutine, and what else the process does disturbs it. Cancellation: between
// rounds, and any time while peers measure. Errors: ErrArgument for unknown names
// and for files that no run saved, ErrCheck for results that differ, and those of
// the operations.
package bench
