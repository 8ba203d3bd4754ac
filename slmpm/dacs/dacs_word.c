/* SPDX-License-Identifier: BSD-3-Clause */
/* Words about shared objects, between their owner and its partners: active messages. */
#include "slmpm/dacs/dacs_object.h"

#include <endian.h>
#include <string.h>

#define WORDS 1 /* the handler of these active messages */

/* ---- sending -------------------------------------------------------------------------------- */

/* Either way the same. */
static struct dacsi_word little(struct dacsi_word word)
{
	return (struct dacsi_word){htole32(word.type), htole32(word.value), htole64(word.to),
				   htole64(word.from)};
}

/* The counter, which nobody asks, lets it wait for room in the ring without this call. */
static DACS_ERR_T send_head(struct dacsi_process *process, const void *head, size_t len)
{
	struct slmpm_how how = {.size = sizeof(how), .ctr = dacsi.words};

	return dacsi_code(slmpm_am(process->peer, WORDS, head, len, NULL, 0, &how, NULL));
}

DACS_ERR_T dacsi_word_send(struct dacsi_process *process, enum dacsi_word_type type, uint32_t value,
			   uint64_t to, uint64_t from)
{
	const struct dacsi_word word = little((struct dacsi_word){type, value, to, from});

	return send_head(process, &word, sizeof(word));
}

DACS_ERR_T dacsi_word_up(const struct dacsi_object *object, enum dacsi_word_type type,
			 uint32_t value)
{
	return dacsi_word_send(object->process, type, value, object->theirs, object->number);
}

int dacsi_word_fence(struct dacsi_process *process, slmpm_req *req)
{
	const struct dacsi_word word = little((struct dacsi_word){.type = DACSI_FENCE});
	struct slmpm_how how = {.size = sizeof(how), .flags = SLMPM_REMOTE};

	return slmpm_am(process->peer, WORDS, &word, sizeof(word), NULL, 0, &how, req);
}

static bool is_region(uint32_t family)
{
	return family == DACSI_REMOTE || family == DACSI_MEM;
}

DACS_ERR_T dacsi_offer_send(struct dacsi_process *process, const struct dacsi_offer *offer)
{
	struct dacsi_offer sent = *offer;

	sent.word = little(sent.word);
	sent.remote_access = htole32(sent.remote_access);
	sent.local_access = htole32(sent.local_access);
	return send_head(process, &sent,
			 is_region(offer->word.value) ? sizeof(sent) : sizeof(sent.word));
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* An answer to an offer; of one object to one partner any stands for the other. */
static uint32_t offer_answered(struct dacsi_object *object, const struct dacsi_process *process,
			       const struct dacsi_word *word)
{
	struct dacsi_member *member = object->members;

	while (member && (member->process != process || member->outcome != DACS_WID_BUSY))
		member = member->next;
	if (!member)
		return word->type == DACSI_REFUSE ? 0 : DACSI_VOID;
	if (word->type == DACSI_REFUSE) {
		member->outcome = DACS_ERR_NO_RESOURCE;
	} else if (word->from) {
		member->theirs = word->from;
		member->outcome = DACS_SUCCESS;
		dacsi_object_due(object);
	}
	return 0;
}

/* To an own object: the answer's type, or 0. */
static uint32_t to_owner(struct dacsi_object *object, struct dacsi_process *process,
			 const struct dacsi_word *word, uint32_t *value)
{
	const struct dacsi_kind *kind = object ? dacsi_parts.kinds[object->family] : NULL;
	struct dacsi_member *member = object ? dacsi_member_find(object, process) : NULL;

	if (!member || !object->owner)
		return word->type == DACSI_LEAVE || word->type == DACSI_REFUSE ? 0 : DACSI_VOID;
	if (word->type < DACSI_LEAVE)
		return offer_answered(object, process, word);
	if (!member->theirs || !kind->word)
		return word->type == DACSI_LEAVE ? 0 : DACSI_VOID;
	if (word->type != DACSI_LEAVE)
		return kind->word(object, member, word, value);
	dacsi_member_leave(object, member, DACS_SUCCESS);
	return 0;
}

/* To one that was accepted from PROCESS. */
static uint32_t to_partner(struct dacsi_object *object, const struct dacsi_process *process,
			   const struct dacsi_word *word, uint32_t *value)
{
	const struct dacsi_kind *kind;

	if (!object || object->owner || object->process != process || object->theirs != word->from)
		return 0;
	kind = dacsi_parts.kinds[object->family];
	if (word->type == DACSI_VOID)
		object->unknown = true;
	else if (kind->word)
		return kind->word(object, NULL, word, value);
	return 0;
}

/* Nothing but the parent is there while it is being connected, and has no number yet. */
struct dacsi_process *dacsi_word_sender(const struct slmpm_am *am)
{
	struct dacsi_process *p = dacsi.children;

	if (dacsi.parent && (dacsi.parent->peer.id == am->peer.id || !dacsi.parent->peer.id))
		return dacsi.parent;
	while (p && p->peer.id != am->peer.id)
		p = p->next;
	return p;
}

/* An offer of a region has its key, all else is a word. */
static bool unpack(const struct slmpm_am *am, struct dacsi_offer *offer)
{
	bool whole = am->head_len == sizeof(*offer);

	if ((!whole && am->head_len != sizeof(offer->word)) || am->data_len)
		return false;
	memcpy(offer, am->head, am->head_len);
	offer->word = little(offer->word);
	offer->remote_access = le32toh(offer->remote_access);
	offer->local_access = le32toh(offer->local_access);
	return whole == (offer->word.type == DACSI_OFFER && is_region(offer->word.value));
}

static void receive_word(const struct slmpm_am *am, void *arg)
{
	struct dacsi_process *process = dacsi_word_sender(am);
	struct dacsi_offer offer = {0};
	struct dacsi_word word;
	struct dacsi_object *object;
	uint32_t answer = 0, value = 0;

	(void)arg;
	if (!process || !unpack(am, &offer))
		return;
	word = offer.word;
	object = dacsi_handle_find(word.to, DACSI_ANY);
	switch (word.type) {
	case DACSI_OFFER: answer = dacsi_accept_offered(process, &offer) ? 0 : DACSI_REFUSE; break;
	case DACSI_WITHDRAW: dacsi_accept_withdrawn(process, word.from); break;
	case DACSI_ACCEPT:
	case DACSI_REFUSE:
	case DACSI_LEAVE:
	case DACSI_LOCK:
	case DACSI_GIVE_UP:
	case DACSI_TRY:
	case DACSI_UNLOCK:
	case DACSI_ARRIVE: answer = to_owner(object, process, &word, &value); break;
	default: answer = to_partner(object, process, &word, &value); break;
	}
	if (!answer)
		return;
	word = little((struct dacsi_word){answer, value, word.from, word.to});
	(void)slmpm_am_reply(am, WORDS, &word, sizeof(word), NULL, 0);
}

int dacsi_word_begin(void)
{
	int rc = slmpm_ctr_create(dacsi.ctx, &dacsi.words);

	return rc < 0 ? rc : slmpm_am_handler(dacsi.ctx, WORDS, receive_word, NULL);
}
