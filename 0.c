#include <slmpm.h>

int publish(slmpm_wq wq, slmpm_rmem table, uint64_t *slot, struct slmpm_iov *record)
{
	struct slmpm_iov number = {slot, sizeof(*slot)};
	struct slmpm_wr wr[2] = {
		{
			.op = SLMPM_OP_PUT,
			.flags = SLMPM_SILENT,
			.rmem = table,
			.offset = *slot * record->len,
			.iov = record,
			.iov_count = 1,
		},
		{
			.op = SLMPM_OP_SEND,
			.stream = 1,
			.cookie = *slot,
			.iov = &number,
			.iov_count = 1,
		},
	};

	return slmpm_post(wq, wr, 2);
}
