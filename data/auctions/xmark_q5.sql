-- How many sold items cost 40 or more.
-- XMark, Query 5, as SQL over the streams of the document.
-- The end of the closed auctions (closed_auction.*) closes the one group there is.
-- Verdict, followed: refused, group_by never answers, since nothing closes its input.

CREATE TABLE closed_auction USING xmark OPTIONS (path '${XMARK}', stream 'closed_auction');

SELECT COUNT(*) AS sold FROM closed_auction WHERE price >= 40;
