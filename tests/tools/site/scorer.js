// Sphinx's search finds pages that have a word, and puts them in the order of the alphabet. This puts first what is
// about the words: an entry of the index or a heading, then the pages in which they stand most often for their length.
// WEIGHTS, from conf.py, is in searchindex.js: for each word its pages, each with 0 to 20.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score, , kind]) => {
    const stemmer = new Stemmer();
    const query = new URLSearchParams(location.search).get("q") || "";
    const words = splitQuery(query.toLowerCase()).map((word) => stemmer.stemWord(word));
    const weights = words.map((word) => (Object.hasOwn(WEIGHTS, word) && WEIGHTS[word][page]) || 0);
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / Math.max(words.length, 1);
    return score + mean + (kind === "title" ? 12 : 0);
  },
};
