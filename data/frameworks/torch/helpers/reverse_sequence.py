def reverse_sequence(x, lengths, time_axis, batch_axis):
    x = x.movedim((time_axis, batch_axis), (0, 1))
    place = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    place = torch.where(place < lengths, lengths - 1 - place, place)
    place = place.reshape(place.shape + (1,) * (x.dim() - 2)).expand(x.shape)
    return x.gather(0, place).movedim((0, 1), (time_axis, batch_axis))
