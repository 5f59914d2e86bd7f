-- Statements of 60 KB that cost the server little.
sysbench.cmdline.options = {
   tables = {"Of the other loads", 1},
   table_size = {"Of the other loads", 1},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = "DO LENGTH('" .. string.rep("x", 60000) .. "')"
end

function event()
   connection:query(statement)
end

function thread_done()
   connection:disconnect()
end
