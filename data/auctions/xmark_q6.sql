-- How many items there are in all regions.
-- XMark, Query 6, as SQL over the streams of the document.
-- The end of the regions (item.*) closes the one group there is.
-- Verdict, followed: refused, group_by never answers, since nothing closes its input.

CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT COUNT(*) AS items FROM item;
