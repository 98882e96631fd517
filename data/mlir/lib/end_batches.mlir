// Closes the loops of lib/batches.
@macro batch
@for i in range(len(batch))
}
@end
