/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenes: each small enough to be searched to its end. */
#include "tests/model/queue/scene.h"

const struct scene scenes[] = {
	{
		.name = "three in flight",
		.scripts = {{"sw", "sw", "sw", "12"}, {"p", "p", "e", "e1", "p", "e2"}},
		.room = 4,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "three in flight, the owner dies",
		.scripts = {{"sw", "sw", "sw"}, {"p", "p", "e", "e1", "p"}},
		.dies = {false, true},
		.room = 3,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "three in flight, the sender dies",
		.scripts = {{"sw", "sw", "lv"}, {"p", "p", "e", "e1", "e"}},
		.dies = {true, false},
		.room = 3,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "taken back",
		.scripts = {{"w", "aw", "w", "w", "3k", "2"}, {"e", "e", "e", "p"}},
		.room = 1,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "bound amidst",
		.scripts = {{"sl", "sv", "w"}, {"c", "p", "e", "e1"}},
		.room = 3,
		.play = &play_stream,
	},
	{
		.name = "bound and gone amidst",
		.scripts = {{"l", "w"}, {"c", "e", "d", "c", "e", "p"}},
		.room = 2,
		.play = &play_stream,
	},
	{
		.name = "cancelled amidst",
		.scripts = {{"s", "v", "w", "123"}, {"c", "e", "p", "e"}},
		.room = 2,
		.play = &play_stream,
	},
	{
		.name = "bound amidst a long one",
		.scripts = {{"h", "u", "1"}, {"c", "e", "p", "e"}},
		.room = 2,
		.play = &play_stream,
	},
	{
		.name = "bound amidst a burst",
		.scripts = {{"m", "m", "mw", "s"}, {"c", "e", "p", "e"}},
		.room = 2,
		.play = &play_stream,
	},
	{
		.name = "bound amidst, one dies",
		.scripts = {{"h", "w"}, {"c", "p", "e", "e"}},
		.dies = {true, true},
		.room = 2,
		.play = &play_stream,
	},
	{
		.name = "reset amidst",
		.scripts = {{"w", "aw", "1r", "rw", "w"}, {"pq", "e1", "er", "p", "e", "e"}},
		.room = 2,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "too short amidst",
		.scripts = {{"l", "hl", "w"}, {"q", "p", "e", "e2", "r", "p", "e"}},
		.room = 2,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "time goes by",
		.scripts = {{"i", "iw", "~", "s1"}, {"p", "~e", "e", "pe"}},
		.room = 2,
		.bound = true,
		.play = &play_stream,
	},
	{
		.name = "two queues wait for each other",
		.scripts = {{"wkbmu", "WKRB.", "eno+U", "oneE", "WNKc", "+kwCu", "+EBo"}},
		.room = 1,
		.play = &play_local,
	},
	{
		.name = "two queues, failures",
		.scripts = {{"wxb", "WXR", "dqrn", "DTe+", "+1wN", "+5Ng", "+wbx"}},
		.dies = {false, true},
		.room = 4,
		.play = &play_local,
	},
	{
		.name = "two queues, cancels",
		.scripts = {{"wxbcg", "CWgX", "e+gc", "125r", "+61", "yzw", "!?W", "!?+"}},
		.dies = {false, true},
		.room = 4,
		.play = &play_local,
	},
	{
		.name = "a queue runs again",
		.scripts = {{"wkmb", "wneo", "WN", "+N", "^", "+kN1", "^+y", "+^w"}},
		.room = 4,
		.kept = true,
		.play = &play_local,
	},
	{
		.name = "two queues, time goes by",
		.scripts = {{"ik", "ING", "+n", "~", "+iW", "~N+"}},
		.room = 4,
		.play = &play_local,
	},
};
const unsigned scene_count = sizeof(scenes) / sizeof(scenes[0]);
