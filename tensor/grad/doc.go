// Package grad is reverse-mode differentiation of what is computed with
// tensor/flow.
//
// A Node is a value that knows what it was made of. Leaf makes one of a value; the
// functions named as flow's do what those do, on nodes. Gradients answers the
// gradients of a scalar with respect to any nodes that it was made of, and VJP
// products of any cotangent with the Jacobian. They are nodes too, which can be
// differentiated again.
//
//	w := grad.Leaf(weights)
//	r := grad.Add(ctx, grad.MatMul(ctx, grad.Leaf(x), w), grad.Leaf(minusY))
//	g := grad.Gradients(ctx, grad.Einsum(ctx, "i,i->", r, r), w)
//	flow.AddInto(ctx, -rate, g[0].Value(), 1, weights)
//
// There is no tape: a node holds its operands, so that what nobody holds is
// garbage, and nodes are used by any number of goroutines at once. Only what lies
// between y and the nodes asked for is computed. A node that y was not made of has
// no gradient: the answer is nil, and no zeros are made. Detach by Leaf(n.Value()).
//
// Complex numbers: the gradient of a real L is the direction of steepest ascent,
// dL/dx + i·dL/dy for z = x + i·y; that is 2·conj(dL/dz) with Wirtinger's dL/dz,
// and a cotangent passes through w = f(z) times conj(df/dz). Of a complex y
// it is that of y's real part. Element types mix in AsType only: a real node gets
// the real part. Integers have no gradients.
//
// Contributions of the uses of a node are added in an order that the graph alone
// decides (VJP says which), so that results are the same bit for bit: on the host
// device always, on a GPU with runtime.Lowering.Reproducible, since its library may
// round a product in a batch otherwise than one by itself.
//
// Nothing here fails or waits, as in flow. Poison of a step forward names flow's
// operation, and that of its step back grad's, both with the line that asked for
// the step forward. Ownership: a gradient may share memory with others and with the
// cotangent; copy it before it is changed in place or freed. A leaf's array may be
// changed in place after Gradients was called, not between it and its uses.
package grad
