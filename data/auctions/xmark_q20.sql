-- How many people have a high, a middle, a low income, or none that is known.
-- XMark, Query 20, as SQL over the streams of the document.
-- The end of the people (person.*) closes the groups.
-- Verdict, followed: refused, group_by never answers, since nothing closes bracket.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');

SELECT bracket, COUNT(*) AS people
FROM (
  SELECT CASE
           WHEN income >= 100000 THEN 'preferred'
           WHEN income >= 30000 THEN 'standard'
           WHEN income IS NOT NULL THEN 'challenge'
           ELSE 'na'
         END AS bracket
  FROM person
)
GROUP BY bracket;
