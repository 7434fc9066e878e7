/** The colours of programs' output, made readable on the page. */

export type Rgb = readonly [red: number, green: number, blue: number];

/** The contrast that WCAG 2 asks of text. */
const CONTRAST = 4.5;
/** The grounds of the page that contrast least with its text: --sunken of the light theme, --raised of the dark one. */
export const GROUNDS: { light: Rgb; dark: Rgb } = { light: [0xee, 0xf0, 0xf3], dark: [0x1e, 0x21, 0x28] };
const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];
/** The eight colours, then the bright ones. */
const BASIC =
  "000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd e5e5e5 666666 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db ffffff"
    .split(" ")
    .map((hex): Rgb => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb);

/** The colour with this number of the 256. */
export function paletteColour(number: number): Rgb {
  if (number >= 232) {
    const grey = 8 + 10 * (number - 232);
    return [grey, grey, grey];
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = number - 16;
  return BASIC[number] ?? [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)];
}

/** The contrast of two colours, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** The colour, mixed with as much black or white as it needs to be readable on the ground. */
export function readable(colour: Rgb, ground: Rgb): Rgb {
  const end = contrast(BLACK, ground) > contrast(WHITE, ground) ? BLACK : WHITE;
  for (let share = 0; share < 1; share += 1 / 32) {
    const mixed = colour.map((part, at) => Math.round(part + (end[at]! - part) * share)) as unknown as Rgb;
    if (contrast(mixed, ground) >= CONTRAST) return mixed;
  }
  return end;
}

/** The style of text in a colour, on a ground of its own or on the page; null is the default colour. */
export function styleOf(colour: Rgb | null, ground: Rgb | null): { color: string; backgroundColor?: string } {
  if (ground !== null) {
    return { color: css(readable(colour ?? ground, ground)), backgroundColor: css(ground) };
  }
  const [light, dark] = [GROUNDS.light, GROUNDS.dark].map((page) => css(readable(colour ?? page, page)));
  return { color: `light-dark(${light}, ${dark})` };
}

function css(colour: Rgb): string {
  return `rgb(${colour.join(" ")})`;
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
