/* SPDX-License-Identifier: BSD-3-Clause */
/* The plate as a PNG: a pixel a cell, from black over violet, red and yellow to white. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "apps/jacobi/jacobi.h"

#define COLOURS 256
#define HOTTEST 100.0

static void mix(png_byte *to, const png_byte *low, const png_byte *high, int share, int all)
{
	for (int i = 0; i < 3; i++)
		to[i] = (png_byte)((low[i] * (all - share) + high[i] * share) / all);
}

static void colour(png_byte map[COLOURS][3])
{
	static const png_byte stops[][3] = {
		{0, 0, 8}, {72, 10, 120}, {214, 40, 60}, {250, 170, 20}, {255, 255, 235}};
	const int last = sizeof(stops) / sizeof(stops[0]) - 1;

	for (int i = 0; i < COLOURS; i++) {
		int at = i * last / COLOURS;

		mix(map[i], stops[at], stops[at + 1], i * last - at * COLOURS, COLOURS);
	}
}

static png_byte shade(double value)
{
	double at = value / HOTTEST * (COLOURS - 1);

	return (png_byte)(at < 0 ? 0 : at > COLOURS - 1 ? COLOURS - 1 : at + 0.5);
}

int picture(const struct run *run, FILE *file, const char *name)
{
	const size_t cells = (size_t)run->task.side * run->task.side;
	png_image image = {
		.version = PNG_IMAGE_VERSION,
		.width = run->task.side,
		.height = run->task.side,
		.format = PNG_FORMAT_RGB_COLORMAP,
		.colormap_entries = COLOURS,
	};
	png_byte map[COLOURS][3], *pixels = malloc(cells);

	if (!pixels) {
		fprintf(stderr, "jacobi: no memory for %s\n", name);
		return 1;
	}
	colour(map);
	for (size_t i = 0; i < cells; i++)
		pixels[i] = shade(run->plate[i]);
	if (!png_image_write_to_stdio(&image, file, 0, pixels, 0, map))
		fprintf(stderr, "jacobi: %s: %s\n", name, image.message);
	free(pixels);
	return image.warning_or_error != 0;
}
